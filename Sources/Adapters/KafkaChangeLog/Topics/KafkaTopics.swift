import ChangeLog
import Configuration
import Kafka
import Observability

/// Creates Weir's topics, and checks existing ones.
package struct KafkaTopics: Sendable {
    /// A setting of a topic that endangers Weir's guarantees, or hinders its work.
    package struct Finding: Sendable, Hashable, CustomStringConvertible {
        package enum Severity: String, Sendable, Hashable {
            /// The topic must not be used.
            case error
            /// The topic can be used.
            case warning
        }

        package let severity: Severity
        /// The topic's name in Kafka.
        package let topic: String
        /// What is found, its consequence, and what to do.
        package let message: String

        package var description: String { "\(severity.rawValue): \(topic): \(message)" }
    }

    /// How to create topics.
    package struct Plan: Sendable {
        /// The number of partitions of each topic except `control`; it can never change.
        package var partitions: Int
        package var replicationFactor: Int
        package var minimumInSyncReplicas: Int

        /// The defaults are for three brokers or more.
        package init(partitions: Int, replicationFactor: Int = 3, minimumInSyncReplicas: Int = 2) {
            self.partitions = partitions
            self.replicationFactor = replicationFactor
            self.minimumInSyncReplicas = minimumInSyncReplicas
        }
    }

    /// The numbers of partitions that a topic may have.
    package static let partitionRange = 1...1024

    private let configuration: KafkaChangeLogConfiguration
    private let logger: Logger

    package init(_ configuration: KafkaChangeLogConfiguration, logger: Logger = .disabled) {
        self.configuration = configuration
        self.logger = logger
    }

    /// Creates the topics that do not exist; existing ones are not changed, see ``check()``.
    ///
    /// Returns when the brokers serve all of them.
    package func create(_ plan: Plan) async throws(ChangeLogError) {
        guard Self.partitionRange ~= plan.partitions else {
            let range = Self.partitionRange
            throw ChangeLogError(
                .other,
                message:
                    "topics must have \(range.lowerBound) to \(range.upperBound) partitions, not \(plan.partitions)")
        }
        let new = Topic.allCases.map { topic in
            KafkaNewTopic(
                name: name(of: topic), partitionCount: topic == .control ? 1 : plan.partitions,
                replicationFactor: plan.replicationFactor,
                settings: TopicSettings(configuration, plan).of(topic))
        }
        try await withClient { (client, calls) async throws(ChangeLogError) in
            try await calls.run { () throws(KafkaError) in
                let failures = try client.create(new, milliseconds: BlockingCalls.limit)
                for (name, error) in failures where error.code != .topicAlreadyExists {
                    throw KafkaError(error.code, message: "\(name) was not created: \(error.message)")
                }
            }
            for topic in new { try await Self.waitUntilServed(topic.name, topic.partitionCount, client, calls) }
        }
    }

    /// Checks the topics' settings; returns nothing if all are right.
    ///
    /// - Throws: if the cluster does not respond.
    package func check() async throws(ChangeLogError) -> [Finding] {
        try await withClient { (client, calls) async throws(ChangeLogError) in
            var findings: [Finding] = []
            var found: [Topic: KafkaTopicDescription] = [:]
            for topic in Topic.allCases {
                let name = name(of: topic)
                do throws(ChangeLogError) {
                    found[topic] = try await Self.describe(name, client, calls)
                } catch {
                    guard error.code == .unknownPartition else { throw error }
                    findings.append(Finding(severity: .error, topic: name, message: "does not exist"))
                }
            }
            let names = Topic.allCases.filter { found[$0] != nil }.map { name(of: $0) }
            guard !names.isEmpty else { return findings }
            let settings = try await calls.run { () throws(KafkaError) in
                try client.settings(ofTopics: names, milliseconds: BlockingCalls.limit)
            }
            let counts = found.filter { $0.key != .control }.values.map(\.partitionCount)
            for topic in Topic.allCases {
                guard let description = found[topic] else { continue }
                let name = name(of: topic)
                let diagnosis = TopicDiagnosis(
                    topic: topic, description: description, settings: settings[name] ?? [:],
                    expectedPartitions: topic == .control ? 1 : counts.max() ?? 0,
                    maximumBatchSize: TopicSettings.maximumBatchSize(configuration))
                findings += diagnosis.findings.map { Finding(severity: $0.severity, topic: name, message: $0.message) }
            }
            return findings
        }
    }

    private func name(of topic: Topic) -> String { TopicNames.name(of: topic, prefix: configuration.topicPrefix) }

    /// Runs a body with a client for queries.
    private func withClient<Value: Sendable>(
        _ body: (KafkaClient, BlockingCalls) async throws(ChangeLogError) -> Value
    ) async throws(ChangeLogError) -> Value {
        let calls = try await BlockingCalls(threads: 1)
        let result: Result<Value, ChangeLogError>
        do throws(ChangeLogError) {
            let properties = ClientProperties(configuration: configuration).queries
            let service = try ClientService(.producer, properties, name: "weir-kafka-ask", logger: logger)
            do throws(ChangeLogError) {
                result = .success(try await body(service.client, calls))
            } catch {
                result = .failure(service.explaining(error))
            }
            await service.close()
        } catch {
            result = .failure(error)
        }
        await calls.close()
        return try result.get()
    }

    static func describe(
        _ name: String, _ client: KafkaClient, _ calls: BlockingCalls
    ) async throws(ChangeLogError) -> KafkaTopicDescription {
        try await calls.run { () throws(KafkaError) in
            try client.describe(topic: name, milliseconds: BlockingCalls.limit)
        }
    }

    /// Waits until the brokers serve a new topic, which Kafka does not notify about.
    private static func waitUntilServed(
        _ name: String, _ count: Int, _ client: KafkaClient, _ calls: BlockingCalls
    ) async throws(ChangeLogError) {
        let deadline = ContinuousClock.now + .seconds(60)
        while true {
            do throws(ChangeLogError) {
                // A topic that existed before may have another number of partitions.
                let found = try await describe(name, client, calls)
                return try await calls.run { () throws(KafkaError) in
                    for partition in 0..<Int32(min(count, found.partitionCount)) {
                        _ = try client.range(topic: name, partition: partition, milliseconds: BlockingCalls.limit)
                    }
                }
            } catch {
                guard error.code == .unknownPartition || error.isRetriable, ContinuousClock.now < deadline else {
                    throw error
                }
            }
            do { try await Task.sleep(for: .milliseconds(50)) } catch {
                throw ChangeLogError(.other, message: "the wait for the topics was cancelled", isRetriable: true)
            }
        }
    }

    /// The number of partitions of the existing topics.
    static func partitionCount(
        prefix: String, _ client: KafkaClient, _ calls: BlockingCalls
    ) async throws(ChangeLogError) -> Int {
        var counts: [(topic: Topic, count: Int)] = []
        for topic in Topic.allCases {
            let name = TopicNames.name(of: topic, prefix: prefix)
            do throws(ChangeLogError) {
                counts.append((topic, try await describe(name, client, calls).partitionCount))
            } catch {
                guard error.code == .unknownPartition else { throw error }
                throw ChangeLogError(
                    .unknownPartition,
                    message: "the topic \(name) does not exist: create the topics with `weir topics create`")
            }
        }
        let shared = counts.filter { $0.topic != .control }
        let isEqual = shared.allSatisfy { $0.count == shared[0].count }
        guard isEqual, counts.first(where: { $0.topic == .control })?.count == 1 else {
            let list = counts.map { "\(prefix)\($0.topic) \($0.count)" }.joined(separator: ", ")
            throw ChangeLogError(
                .other,
                message: """
                    the topics have wrong numbers of partitions (\(list)): control must have 1, and the others must have equally \
                    many; partitions must never be added
                    """)
        }
        return shared[0].count
    }
}
