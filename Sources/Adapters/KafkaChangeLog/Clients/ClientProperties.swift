import Configuration
import Kafka

/// The properties of each kind of client: the operator's, overridden by those that Weir's guarantees depend on.
struct ClientProperties: Sendable {
    let configuration: KafkaChangeLogConfiguration
    /// The number of partitions that share `kafka.fetch-bytes`.
    var partitionCount = 1

    /// For queries.
    ///
    /// Not about groups: if a coordinator moves or loads, librdkafka 2.0 crashes a process that queries it with a client without
    /// `group.id`.
    var queries: KafkaProperties { common }

    /// For appends without gaps (I1).
    var producer: KafkaProperties {
        var properties = common
        properties.set("enable.idempotence", "true")
        properties.set("acks", "all")
        properties.set("enable.gapless.guarantee", "true")
        // No timeout: a record that times out would leave a gap.
        properties.set("message.timeout.ms", "0")
        properties.set("linger.ms", "\(configuration.lingerMilliseconds)")
        properties.set("compression.codec", configuration.compression.rawValue)
        properties.set("message.max.bytes", "\(configuration.maximumRecordSize + Self.recordOverhead)")
        // Callers wait at the limit of `AppendQueue`. librdkafka would refuse at its own limit, which is therefore higher.
        let bytes = max(configuration.queueBytes, configuration.maximumRecordSize) + (1 << 20)
        properties.set("queue.buffering.max.kbytes", "\(bytes / 1024 * 2)")
        properties.set("queue.buffering.max.messages", "0")
        return properties
    }

    /// For readers without a group.
    var reader: KafkaProperties {
        var properties = common
        setConsumer(&properties)
        // An offset out of range is an error, and never reset.
        properties.set("auto.offset.reset", "error")
        properties.set("queued.max.messages.kbytes", "\(queueBytes / 1024)")
        properties.set("fetch.message.max.bytes", "\(min(queueBytes, 1 << 20))")
        properties.set("fetch.max.bytes", "\(configuration.fetchBytes)")
        // A response has at least one record, which may exceed the requested size.
        let responseBytes = configuration.fetchBytes + configuration.maximumRecordSize * 2
        properties.set("receive.message.max.bytes", "\(max(100_000_000, responseBytes))")
        // Kafka's checksum of each batch: corrupt records are detected here, and not in the tables.
        properties.set("check.crcs", "true")
        return properties
    }

    /// The size of the queue of fetched records, for each partition.
    var queueBytes: Int { max(configuration.fetchBytes / max(partitionCount, 1), 64 << 10) }

    /// For a member of a group, which fetches nothing.
    ///
    /// - Parameter instance: the name under which the coordinator knows the member over restarts; `nil` for none.
    func member(of group: String, instance: String? = nil) -> KafkaProperties {
        var properties = common
        setConsumer(&properties)
        properties.set("group.id", group)
        if let instance { properties.set("group.instance.id", instance) }
        properties.set("partition.assignment.strategy", "cooperative-sticky")
        let session = Int(configuration.sessionTimeout / .milliseconds(1))
        properties.set("session.timeout.ms", "\(session)")
        // Members learn from the response to a heartbeat that partitions move, twice for each move.
        if properties["heartbeat.interval.ms"] == nil {
            properties.set("heartbeat.interval.ms", "\(max(1, min(500, session / 4)))")
        }
        // librdkafka 2.0 may drop the metadata request after which a member joins its group. The next one comes with this
        // interval, whose default is five minutes.
        if properties["topic.metadata.refresh.interval.ms"] == nil {
            properties.set("topic.metadata.refresh.interval.ms", "10000")
        }
        properties.set("auto.offset.reset", "earliest")
        properties.set("queued.max.messages.kbytes", "1")
        properties.set("queued.min.messages", "1")
        return properties
    }

    private var common: KafkaProperties {
        var properties = KafkaProperties()
        for property in configuration.properties {
            properties.set(property.name, property.value.reveal(), isSecret: property.isSecret)
        }
        properties.set("bootstrap.servers", configuration.servers.joined(separator: ","))
        if properties["client.id"] == nil { properties.set("client.id", "weir") }
        properties.set("allow.auto.create.topics", "false")
        return properties
    }

    private func setConsumer(_ properties: inout KafkaProperties) {
        properties.set("enable.auto.commit", "false")
        properties.set("enable.auto.offset.store", "false")
        properties.set("enable.partition.eof", "false")
    }

    /// The maximum number of bytes that the batch format adds to a record's key and value.
    static let recordOverhead = 1024
}
