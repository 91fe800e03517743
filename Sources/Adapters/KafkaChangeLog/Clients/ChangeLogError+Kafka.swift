import ChangeLog
import Kafka

/// The operation that an ACL must allow for a call.
enum KafkaOperation: String, Sendable {
    case describe = "Describe"
    case read = "Read"
    case write = "Write"
}

extension ChangeLogError {
    /// Translates an error of Kafka.
    ///
    /// - Parameters:
    ///   - operation: the operation on the topic that the call needs, for the advice.
    ///   - group: the group of the call, for the advice.
    init(
        _ error: KafkaError, partition: TopicPartition? = nil, needing operation: KafkaOperation = .describe,
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
        if let advice = Self.advice(error.code, operation, group) { message += "; \(advice)" }
        self.init(code, partition: partition, message: message, isRetriable: error.isRetriable && code != .closed)
    }

    /// What an operator can do about a missing permission.
    private static func advice(_ code: KafkaErrorCode, _ operation: KafkaOperation, _ group: String?) -> String? {
        switch code {
        case .topicForbidden: "allow this process's user \(operation.rawValue) on the topic, see docs/kafka.md"
        case .groupForbidden:
            "allow this process's user Read and Describe on the group\(group.map { " \($0)" } ?? ""), see docs/kafka.md"
        case .clusterForbidden:
            "allow this process's user IdempotentWrite and Describe on the cluster, see docs/kafka.md"
        default: nil
        }
    }
}

/// Translates the errors of a body.
func translating<Result>(
    _ partition: TopicPartition? = nil, group: String? = nil, _ body: () throws(KafkaError) -> Result
) throws(ChangeLogError) -> Result {
    do {
        return try body()
    } catch {
        throw ChangeLogError(error, partition: partition, group: group)
    }
}
