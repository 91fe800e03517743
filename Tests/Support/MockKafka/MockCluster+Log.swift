import ChangeLog
import Configuration
import KafkaChangeLog

extension MockCluster {
    /// Creates a history's topics and opens a log of them, whose clients reconnect within milliseconds.
    ///
    /// - Parameter queueBytes: of a producer, also below what the settings allow.
    package func openLog(partitions: Int, queueBytes: Int = 32 << 20) async throws -> KafkaChangeLog {
        let prefix = "weir."
        for topic in Topic.allCases {
            createTopic(prefix + topic.rawValue, partitions: topic == .control ? 1 : partitions)
        }
        var configuration = KafkaChangeLogConfiguration(servers: [servers], topicPrefix: prefix)
            .with(\.queueBytes, queueBytes)
            // The records of one append are one batch, which readers get together.
            .with(\.lingerMilliseconds, 500)
        for (name, value) in [
            ("reconnect.backoff.ms", "10"), ("reconnect.backoff.max.ms", "50"), ("retry.backoff.ms", "10"),
            ("heartbeat.interval.ms", "50"), ("fetch.wait.max.ms", "20"),
        ] {
            try configuration.pass(KafkaProperty(name, Secret(value)))
        }
        configuration.acceptsProducersTime = true
        // Sessions outlast what a test does to the brokers.
        configuration.sessionTimeout = .seconds(60)
        return try await KafkaChangeLog(configuration)
    }
}
