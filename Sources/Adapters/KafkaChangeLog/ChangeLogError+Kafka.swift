import ChangeLog
import Kafka

/// What the brokers must allow for a call.
enum KafkaRight: String, Sendable {
    case describe = "Describe"
    case read = "Read"
    case write = "Write"
}

extension ChangeLogError {
    /// What Kafka said, as the port says it.
    ///
    /// - Parameters:
    ///   - right: what the call needs to be allowed on its topic.
    ///   - group: the group that the call is about.
    init(
        _ error: KafkaError, partition: TopicPartition? = nil, needing right: KafkaRight = .describe,
        group: String? = nil
    ) {
        let code: Code
        switch error.code {
        case .unknownTopicOrPartition, .unknownTopic, .unknownPartition: code = .unknownPartition
        case .illegalGeneration, .unknownMember, .fencedInstance: code = .fenced
        case .closed: code = .closed
        case .storage: code = .inputOutput
        default: code = error.isRetriable ? .inputOutput : .other
        }
        var message = code == .closed ? "the log was closed" : error.description
        if let advice = Self.advice(error.code, right, group) { message += "; \(advice)" }
        self.init(code, partition: partition, message: message, isRetriable: error.isRetriable && code != .closed)
    }

    /// What to do about a refusal.
    private static func advice(_ code: KafkaErrorCode, _ right: KafkaRight, _ group: String?) -> String? {
        switch code {
        case .topicForbidden: "allow the user of this process \(right.rawValue) on the topic, see docs/kafka.md"
        case .groupForbidden:
            "allow the user of this process Read and Describe on the group\(group.map { " \($0)" } ?? ""), see docs/kafka.md"
        case .clusterForbidden:
            "allow the user of this process IdempotentWrite and Describe on the cluster, see docs/kafka.md"
        default: nil
        }
    }
}

/// Runs a body whose errors are Kafka's.
func translating<Result>(
    _ partition: TopicPartition? = nil, group: String? = nil, _ body: () throws(KafkaError) -> Result
) throws(ChangeLogError) -> Result {
    do {
        return try body()
    } catch {
        throw ChangeLogError(error, partition: partition, group: group)
    }
}
