import CRdkafka

/// A message to produce.
package struct KafkaRecord: Sendable {
    /// The topic's name.
    package let topic: String
    /// The partition, from 0.
    package let partition: Int32
    /// The key; empty means an empty key, not none.
    package let key: [UInt8]
    /// The value; empty means an empty value, not the removal of the key.
    package let value: [UInt8]

    /// Makes a message.
    package init(topic: String, partition: Int32, key: [UInt8], value: [UInt8]) {
        self.topic = topic
        self.partition = partition
        self.key = key
        self.value = value
    }
}

extension KafkaClient {
    /// Copies messages into the queue, in order, and returns at once; each gets a delivery report with its tag.
    ///
    /// - Parameter firstTag: the first message's tag; each further one's is one higher.
    /// - Returns: how many were taken, and why the next one was not.
    package func produce(
        _ records: some Sequence<KafkaRecord>, firstTag: UInt
    ) -> (count: Int, error: KafkaError?) {
        var count = 0
        do throws(KafkaError) {
            try use { (handle) throws(KafkaError) in
                for record in records {
                    try produce(record, tag: firstTag + UInt(count), handle)
                    count += 1
                }
            }
            return (count, nil)
        } catch {
            return (count, error)
        }
    }

    private func produce(_ record: KafkaRecord, tag: UInt, _ handle: OpaquePointer) throws(KafkaError) {
        let topic = try topic(record.topic, handle)
        let error = record.key.withUnsafeBytes { key in
            record.value.withUnsafeBytes { value in
                // Copied within the call. A null pointer would mean no key and no value.
                withUnsafePointer(to: 0 as UInt8) { nothing in
                    crdkafka_produce(
                        handle, topic, record.partition, key.baseAddress ?? UnsafeRawPointer(nothing), key.count,
                        value.baseAddress ?? UnsafeRawPointer(nothing), value.count,
                        UnsafeMutableRawPointer(bitPattern: tag))
                }
            }
        }
        if let error { throw KafkaError(taking: error, during: "\(record.topic)[\(record.partition)]") }
    }

    /// Gives up every message that is not delivered; each one's report says so.
    package func purge() {
        do throws(KafkaError) {
            try use { (handle) throws(KafkaError) in
                let flags = RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT | RD_KAFKA_PURGE_F_NON_BLOCKING
                let code = rd_kafka_purge(handle, flags)
                if let error = KafkaError(code) { throw error }
            }
        } catch {
            // Said of a client that is no producer, or closed: then there are no messages.
            assert(error.code == .closed, "a producer's messages can be purged")
        }
    }
}
