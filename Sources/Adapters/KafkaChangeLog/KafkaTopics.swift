import ChangeLog
import Configuration
import Kafka
import Observability

/// Makes the topics of a history, and says what is wrong with those that are there.
package struct KafkaTopics: Sendable {
    /// Something about a topic that endangers what Weir promises, or will get in its way.
    package struct Finding: Sendable, Hashable, CustomStringConvertible {
        /// How bad it is.
        package enum Severity: String, Sendable, Hashable {
            /// The log must not be used so.
            case error
            /// It can be used; somebody should know.
            case warning
        }

        /// How bad it is.
        package let severity: Severity
        /// The topic's name in Kafka.
        package let topic: String
        /// What is so, what follows from it, and what to do.
        package let message: String

        /// One line.
        package var description: String { "\(severity.rawValue): \(topic): \(message)" }
    }

    /// How topics are made.
    package struct Plan: Sendable {
        /// Partitions of each topic but `control`; they can never be changed.
        package var partitions: Int
        /// Copies of each partition.
        package var replicationFactor: Int
        /// Copies that must have a record before it is acknowledged.
        package var minimumInSyncReplicas: Int

        /// Plans topics: with three brokers or more, three copies, of which two are enough.
        package init(partitions: Int, replicationFactor: Int = 3, minimumInSyncReplicas: Int = 2) {
            self.partitions = partitions
            self.replicationFactor = replicationFactor
            self.minimumInSyncReplicas = minimumInSyncReplicas
        }
    }

    /// How many partitions a topic may have.
    package static let partitionRange = 1...1024

    private let configuration: KafkaChangeLogConfiguration
    private let logger: Logger

    /// Looks after the topics of a log.
    package init(_ configuration: KafkaChangeLogConfiguration, logger: Logger = .disabled) {
        self.configuration = configuration
        self.logger = logger
    }

    /// Makes the topics that are not there; those that are stay as they are, which ``check()`` judges.
    ///
    /// Returns when the cluster's brokers know of all of them.
    package func create(_ plan: Plan) async throws(ChangeLogError) {
        guard Self.partitionRange ~= plan.partitions else {
            let range = Self.partitionRange
            throw ChangeLogError(
                .other,
                message: "topics have \(range.lowerBound) to \(range.upperBound) partitions, not \(plan.partitions)")
        }
        let new = Topic.allCases.map { topic in
            KafkaNewTopic(
                name: name(of: topic), partitionCount: topic == .control ? 1 : plan.partitions,
                replicationFactor: plan.replicationFactor,
                settings: TopicSettings(configuration, plan).of(topic))
        }
        try await asking { (client, calls) async throws(ChangeLogError) in
            try await calls.run { () throws(KafkaError) in
                let refused = try client.create(new, milliseconds: BlockingCalls.limit)
                for (name, error) in refused where error.code != .topicAlreadyExists {
                    throw KafkaError(error.code, message: "\(name) was not made: \(error.message)")
                }
            }
            for topic in new { try await Self.waitUntilServed(topic.name, topic.partitionCount, client, calls) }
        }
    }

    /// What is wrong with the topics; nothing where all is well.
    ///
    /// - Throws: where the cluster cannot be asked.
    package func check() async throws(ChangeLogError) -> [Finding] {
        try await asking { (client, calls) async throws(ChangeLogError) in
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
                let judgement = TopicDiagnosis(
                    topic: topic, description: description, settings: settings[name] ?? [:],
                    expectedPartitions: topic == .control ? 1 : counts.max() ?? 0,
                    maximumBatchSize: TopicSettings.maximumBatchSize(configuration))
                findings += judgement.findings.map { Finding(severity: $0.severity, topic: name, message: $0.message) }
            }
            return findings
        }
    }

    private func name(of topic: Topic) -> String { LogTopics.name(of: topic, prefix: configuration.topicPrefix) }

    /// Runs a body with a client of its own.
    private func asking<Value: Sendable>(
        _ body: (KafkaClient, BlockingCalls) async throws(ChangeLogError) -> Value
    ) async throws(ChangeLogError) -> Value {
        let calls = try await BlockingCalls(threads: 1)
        let result: Result<Value, ChangeLogError>
        do throws(ChangeLogError) {
            let properties = ClientProperties(configuration: configuration).questions
            let questions = try ClientService(.producer, properties, name: "weir-kafka-ask", logger: logger)
            do throws(ChangeLogError) {
                result = .success(try await body(questions.client, calls))
            } catch {
                result = .failure(questions.explaining(error))
            }
            await questions.close()
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

    /// Brokers take up a topic some time after it was made, and none tells when: they are asked again.
    private static func waitUntilServed(
        _ name: String, _ count: Int, _ client: KafkaClient, _ calls: BlockingCalls
    ) async throws(ChangeLogError) {
        let deadline = ContinuousClock.now + .seconds(60)
        while true {
            do throws(ChangeLogError) {
                // One that was there before may have another number.
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

    /// How many partitions the topics of a history have.
    static func partitionCount(
        prefix: String, _ client: KafkaClient, _ calls: BlockingCalls
    ) async throws(ChangeLogError) -> Int {
        var counts: [(topic: Topic, count: Int)] = []
        for topic in Topic.allCases {
            let name = LogTopics.name(of: topic, prefix: prefix)
            do throws(ChangeLogError) {
                counts.append((topic, try await describe(name, client, calls).partitionCount))
            } catch {
                guard error.code == .unknownPartition else { throw error }
                throw ChangeLogError(
                    .unknownPartition,
                    message: "the topic \(name) does not exist: make the topics before the first start")
            }
        }
        let shared = counts.filter { $0.topic != .control }
        let isEqual = shared.allSatisfy { $0.count == shared[0].count }
        guard isEqual, counts.first(where: { $0.topic == .control })?.count == 1 else {
            let list = counts.map { "\(prefix)\($0.topic) \($0.count)" }.joined(separator: ", ")
            throw ChangeLogError(
                .other,
                message: """
                    the topics have other partitions than they must (\(list)): control has 1, the others have equally many, \
                    and partitions are never added
                    """)
        }
        return shared[0].count
    }
}
