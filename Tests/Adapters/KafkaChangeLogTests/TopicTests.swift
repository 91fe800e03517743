import ChangeLog
import ChangeLogConformance
import Kafka
import KafkaChangeLog
import MockKafka
import Testing

@Suite(.timeLimit(.minutes(2))) struct TopicTests {
    @Test func namesTheTopicThatIsMissing() async throws {
        let cluster = MockCluster()
        let place = KafkaLogHarness(mock: cluster)
        for topic in Topic.allCases where topic != .ordered {
            cluster.createTopic(place.prefix + topic.rawValue, partitions: topic == .control ? 1 : 4)
        }
        // The mock makes a topic that it is asked for, as no broker of Weir may.
        cluster.failTopic(place.prefix + "ordered")
        let error = await #expect(throws: ChangeLogError.self) {
            _ = try await KafkaChangeLog(place.configuration())
        }
        #expect(error?.code == .unknownPartition)
        #expect(error?.message.contains(place.prefix + "ordered") == true)
    }

    @Test func refusesTopicsWhosePartitionsDiffer() async throws {
        for (odd, count) in [(Topic.changes, 3), (.control, 2)] {
            let cluster = MockCluster()
            let place = KafkaLogHarness(mock: cluster)
            for topic in Topic.allCases {
                let usual = topic == .control ? 1 : 4
                cluster.createTopic(place.prefix + topic.rawValue, partitions: topic == odd ? count : usual)
            }
            let error = await #expect(throws: ChangeLogError.self) {
                _ = try await KafkaChangeLog(place.configuration())
            }
            #expect(error?.code == .other)
            #expect(error?.message.contains("\(odd) \(count)") == true)
        }
    }

    /// The mock cluster keeps the producers' times, which nobody may take for the log's.
    @Test func refusesRecordsWithTheTimeOfTheirProducers() async throws {
        let place = KafkaLogHarness(mock: MockCluster())
        try await place.createTopics(partitions: 4)
        var configuration = place.configuration()
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

    @Test(.enabled(if: TestCluster.isReal, "the mock cluster has no settings of topics"))
    func makesTopicsThatItFindsNothingWrongWith() async throws {
        try await TestCluster.whenFree {
            let place = try await KafkaLogHarness.make()
            try await place.createTopics(partitions: 4)
            // Again: what is there stays.
            try await place.createTopics(partitions: 6)
            let findings = try await KafkaTopics(place.configuration()).check()
            #expect(findings.allSatisfy { $0.severity == .warning && $0.message.contains("of 3 copies") })
            #expect(findings.count == Topic.allCases.count)
            let log = try await KafkaChangeLog(place.configuration())
            #expect(log.partitionCount == 4)
            await log.close()
            try await place.remove()
        }
    }

    @Test(.enabled(if: TestCluster.isReal, "the mock cluster has no settings of topics"))
    func findsWhatWouldBreakItsPromises() async throws {
        try await TestCluster.whenFree {
            let place = try await KafkaLogHarness.make()
            try await place.createTopics(partitions: 4)
            let prefix = place.prefix
            try await place.administering { client in
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
            // Brokers learn of settings a moment later, and none tells when.
            while !found.contains("ordered unclean.leader.election.enable") {
                let findings = try await KafkaTopics(place.configuration()).check()
                found = Set(
                    findings.filter { !$0.message.contains("copies") }.map {
                        "\($0.topic.dropFirst(prefix.count)) \($0.message.prefix { $0 != " " })"
                    })
            }
            for expected in [
                "changes retention.ms", "uploads retention.ms", "uploads message.timestamp.type",
                "control cleanup.policy", "changes max.message.bytes", "ordered unclean.leader.election.enable",
            ] {
                #expect(found.contains(expected))
            }
            try await place.remove()
        }
    }
}
