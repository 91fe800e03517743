#ifndef WEIR_CRDKAFKA_SHIM_H
#define WEIR_CRDKAFKA_SHIM_H

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

// What Swift cannot import from rdkafka.h: arrays of tagged unions.

// Copies a message into the producer's queue; never waits.
static inline rd_kafka_error_t *crdkafka_produce(
    rd_kafka_t *client, rd_kafka_topic_t *topic, int32_t partition, const void *key, size_t key_size,
    const void *value, size_t value_size, void *opaque) {
    rd_kafka_vu_t arguments[6];
    arguments[0].vtype = RD_KAFKA_VTYPE_RKT;
    arguments[0].u.rkt = topic;
    arguments[1].vtype = RD_KAFKA_VTYPE_PARTITION;
    arguments[1].u.i32 = partition;
    arguments[2].vtype = RD_KAFKA_VTYPE_MSGFLAGS;
    arguments[2].u.i = RD_KAFKA_MSG_F_COPY;
    arguments[3].vtype = RD_KAFKA_VTYPE_KEY;
    arguments[3].u.mem.ptr = (void *)key;
    arguments[3].u.mem.size = key_size;
    arguments[4].vtype = RD_KAFKA_VTYPE_VALUE;
    arguments[4].u.mem.ptr = (void *)value;
    arguments[4].u.mem.size = value_size;
    arguments[5].vtype = RD_KAFKA_VTYPE_OPAQUE;
    arguments[5].u.ptr = opaque;
    return rd_kafka_produceva(client, arguments, sizeof arguments / sizeof arguments[0]);
}

#endif
