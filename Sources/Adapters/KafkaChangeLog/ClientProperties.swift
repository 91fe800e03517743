import Configuration
import Kafka

/// The properties of each kind of client: the operator's first, then those that Weir's promises hang on.
struct ClientProperties: Sendable {
    let configuration: KafkaChangeLogConfiguration
    /// How many partitions share the bound on what is fetched.
    var partitionCount = 1

    /// Asks questions.
    ///
    /// None about a group: where its coordinator moves or loads, librdkafka 2.0 ends a process that asks as a client of no group.
    var questions: KafkaProperties { common }

    /// Appends without gaps (I1).
    var producer: KafkaProperties {
        var properties = common
        properties.set("enable.idempotence", "true")
        properties.set("acks", "all")
        properties.set("enable.gapless.guarantee", "true")
        // No message times out: it would leave a gap.
        properties.set("message.timeout.ms", "0")
        properties.set("linger.ms", "\(configuration.lingerMilliseconds)")
        properties.set("compression.codec", configuration.compression.rawValue)
        properties.set("message.max.bytes", "\(configuration.maximumRecordSize + Self.recordOverhead)")
        // The bound is the adapter's, which has callers wait; librdkafka refuses, so its bound comes after that one.
        let bytes = max(configuration.queueBytes, configuration.maximumRecordSize) + (1 << 20)
        properties.set("queue.buffering.max.kbytes", "\(bytes / 1024 * 2)")
        properties.set("queue.buffering.max.messages", "0")
        return properties
    }

    /// Reads partitions without a group.
    var reader: KafkaProperties {
        var properties = common
        setConsumer(&properties)
        // A position outside of the range is an error, never moved.
        properties.set("auto.offset.reset", "error")
        properties.set("queued.max.messages.kbytes", "\(queueBytes / 1024)")
        properties.set("fetch.message.max.bytes", "\(min(queueBytes, 1 << 20))")
        properties.set("fetch.max.bytes", "\(configuration.fetchBytes)")
        // One record may be larger than what is asked for.
        let answer = configuration.fetchBytes + configuration.maximumRecordSize * 2
        properties.set("receive.message.max.bytes", "\(max(100_000_000, answer))")
        // The cluster's own checksum over each batch: a flipped bit is noticed here, not in the tables.
        properties.set("check.crcs", "true")
        return properties
    }

    /// How much of a partition is fetched ahead.
    var queueBytes: Int { max(configuration.fetchBytes / max(partitionCount, 1), 64 << 10) }

    /// Takes part in a group, and reads nothing itself.
    func member(of group: String) -> KafkaProperties {
        var properties = common
        setConsumer(&properties)
        properties.set("group.id", group)
        properties.set("partition.assignment.strategy", "cooperative-sticky")
        let session = Int(configuration.sessionTimeout / .milliseconds(1))
        properties.set("session.timeout.ms", "\(session)")
        // Of several signs of life, one may be late.
        if properties["heartbeat.interval.ms"] == nil {
            properties.set("heartbeat.interval.ms", "\(min(3000, session / 3))")
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

    /// What the format of a batch adds to a record's key and value, at most.
    static let recordOverhead = 1024
}
