import ChangeLog
import ChangeLogConformance
import Kafka
import KafkaChangeLog
import MockKafka
import Testing

@Suite(.timeLimit(.minutes(5))) struct TopicTests {
    @Test func missingTopicIsNamed() async throws {
        let cluster = MockCluster()
        let harness = KafkaLogHarness(mock: cluster)
        for topic in Topic.allCases where topic != .ordered {
            cluster.createTopic(harness.prefix + topic.rawValue, partitions: topic == .control ? 1 : 4)
        }
        // The mock cluster would create the topic automatically.
        cluster.failTopic(harness.prefix + "ordered")
        let error = await #expect(throws: ChangeLogError.self) {
            _ = try await KafkaChangeLog(harness.configuration())
        }
        #expect(error?.code == .unknownPartition)
        #expect(error?.message.contains(harness.prefix + "ordered") == true)
    }

    @Test func rejectsTopicsWithDifferentPartitions() async throws {
        for (odd, count) in [(Topic.changes, 3), (.control, 2)] {
            let cluster = MockCluster()
            let harness = KafkaLogHarness(mock: cluster)
            for topic in Topic.allCases {
                let usual = topic == .control ? 1 : 4
                cluster.createTopic(harness.prefix + topic.rawValue, partitions: topic == odd ? count : usual)
            }
            let error = await #expect(throws: ChangeLogError.self) {
                _ = try await KafkaChangeLog(harness.configuration())
            }
            #expect(error?.code == .other)
            #expect(error?.message.contains("\(odd) \(count)") == true)
        }
    }

    /// The mock cluster keeps the producers' times.
    @Test func rejectsRecordsWithTheirProducersTime() async throws {
        let harness = KafkaLogHarness(mock: MockCluster())
        try await harness.createTopics(partitions: 4)
        var configuration = harness.configuration()
        configuration.acceptsProducersTime = false
        let log = try await KafkaChangeLog(configuration)
        try await log.producer().append([NewRecord(to: TopicPartition(.uploads, 0), value: [1])])
        let reader = try await log.reader(of: TopicPartition(.uploads, 0), from: 0)
        for _ in 0..<2 {
            let error = await #expect(throws: ChangeLogError.self) { _ = try await reader.next(maximumBytes: 1) }
            #expect(error?.message.contains("LogAppendTime") == true)
        }
        await log.close()
    }

    @Test(.enabled(if: TestCluster.isReal, "the mock cluster has no topic settings"))
    func createdTopicsPassTheCheck() async throws {
        try await TestCluster.whenFree {
            let harness = try await KafkaLogHarness.make()
            try await harness.createTopics(partitions: 4)
            // Existing topics are not changed.
            try await harness.createTopics(partitions: 6)
            let findings = try await KafkaTopics(harness.configuration()).check()
            #expect(findings.allSatisfy { $0.severity == .warning && $0.message.contains("of 3 replicas") })
            #expect(findings.count == Topic.allCases.count)
            let log = try await KafkaChangeLog(harness.configuration())
            #expect(log.partitionCount == 4)
            await log.close()
            try await harness.remove()
        }
    }

    @Test(.enabled(if: TestCluster.isReal, "the mock cluster has no topic settings"))
    func findsSettingsThatBreakGuarantees() async throws {
        try await TestCluster.whenFree {
            let harness = try await KafkaLogHarness.make()
            try await harness.createTopics(partitions: 4)
            let prefix = harness.prefix
            try await harness.administering { client in
                for (topic, settings) in [
                    ("changes", [("retention.ms", "1000"), ("message.timestamp.type", "LogAppendTime")]),
                    ("uploads", [("retention.ms", "1000"), ("message.timestamp.type", "CreateTime")]),
                    ("control", [("cleanup.policy", "delete"), ("message.timestamp.type", "LogAppendTime")]),
                    (
                        "ordered",
                        [("unclean.leader.election.enable", "true"), ("message.timestamp.type", "LogAppendTime")]
                    ),
                ] {
                    try client.replaceSettings(
                        ofTopic: prefix + topic, settings.map { (name: $0.0, value: $0.1) }, milliseconds: 15_000)
                }
            }
            var found: Set<String> = []
            // Brokers apply settings a moment later, without notification.
            while !found.contains("ordered unclean.leader.election.enable") {
                let findings = try await KafkaTopics(harness.configuration()).check()
                found = Set(
                    findings.filter { !$0.message.contains("replicas") }.map {
                        "\($0.topic.dropFirst(prefix.count)) \($0.message.prefix { $0 != " " })"
                    })
            }
            for expected in [
                "changes retention.ms", "uploads retention.ms", "uploads message.timestamp.type",
                "control cleanup.policy", "changes max.message.bytes", "ordered unclean.leader.election.enable",
            ] {
                #expect(found.contains(expected))
            }
            try await harness.remove()
        }
    }
}
