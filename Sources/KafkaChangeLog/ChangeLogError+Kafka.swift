import ChangeLog
import Kafka

extension ChangeLogError {
    /// What Kafka said, as the port says it.
    init(_ error: KafkaError, partition: TopicPartition? = nil) {
        let code: Code
        switch error.code {
        case .unknownTopicOrPartition, .unknownTopic, .unknownPartition: code = .unknownPartition
        case .illegalGeneration, .unknownMember, .fencedInstance: code = .fenced
        case .closed: code = .closed
        case .storage: code = .inputOutput
        default: code = error.isRetriable ? .inputOutput : .other
        }
        let message = code == .closed ? "the log was closed" : error.description
        self.init(code, partition: partition, message: message, isRetriable: error.isRetriable && code != .closed)
    }
}

/// Runs a body whose errors are Kafka's.
func translating<Result>(
    _ partition: TopicPartition? = nil, _ body: () throws(KafkaError) -> Result
) throws(ChangeLogError) -> Result {
    do {
        return try body()
    } catch {
        throw ChangeLogError(error, partition: partition)
    }
}
