/// Properties of librdkafka that no setting reaches, each with the reason.
enum FixedProperty {
    private static let promise = "no acknowledged change may be lost, doubled or reordered"
    private static let ownKey = "it follows from a setting of Weir's own"
    private static let group = "groups and positions are Weir's to keep"
    private static let events = "the program serves librdkafka in its own way"

    private static let reasons: [String: String] = [
        "enable.idempotence": promise, "acks": promise, "request.required.acks": promise,
        "enable.gapless.guarantee": promise, "message.timeout.ms": promise, "delivery.timeout.ms": promise,
        "max.in.flight": promise, "max.in.flight.requests.per.connection": promise, "retries": promise,
        "message.send.max.retries": promise, "transactional.id": promise, "transaction.timeout.ms": promise,
        "queuing.strategy": promise, "delivery.report.only.error": promise, "produce.offset.report": promise,
        "partitioner": promise, "auto.offset.reset": promise, "check.crcs": promise, "isolation.level": promise,
        "allow.auto.create.topics": promise, "topic.blacklist": promise,

        "bootstrap.servers": ownKey, "metadata.broker.list": ownKey, "linger.ms": ownKey,
        "queue.buffering.max.ms": ownKey, "queue.buffering.max.kbytes": ownKey, "queue.buffering.max.messages": ownKey,
        "compression.codec": ownKey, "compression.type": ownKey, "message.max.bytes": ownKey,
        "receive.message.max.bytes": ownKey, "queued.max.messages.kbytes": ownKey, "queued.min.messages": ownKey,
        "fetch.max.bytes": ownKey, "fetch.message.max.bytes": ownKey, "max.partition.fetch.bytes": ownKey,

        "group.id": group, "group.instance.id": group, "partition.assignment.strategy": group,
        "session.timeout.ms": ownKey, "group.protocol.type": group, "enable.auto.commit": group,
        "auto.commit.enable": group, "auto.commit.interval.ms": group, "enable.auto.offset.store": group,
        "offset.store.method": group, "offset.store.path": group, "offset.store.sync.interval.ms": group,
        "enable.partition.eof": group,

        "log.queue": events, "log_level": events, "enabled_events": events, "statistics.interval.ms": events,
        "internal.termination.signal": events, "consume.callback.max.messages": events,
        "test.mock.num.brokers": events,
    ]

    /// Why a property cannot be set; `nil` where it can.
    static func reason(_ name: String) -> String? { reasons[name] }
}
