import ChangeLog
import SyncModel

/// Why a partition cannot be ordered; the message says what an operator can do.
package enum OrderingError: Error, Sendable, CustomStringConvertible {
    /// The tables stand at a message that `changes` does not hold.
    case positionOutOfRange(partition: Int, position: Int64, range: LogRange)
    /// The message before the tables' position is not one that they were brought past.
    case otherMessages(partition: Int, position: Int64)
    /// The tables hold results that `ordered` does not.
    case resultsLost(partition: Int, position: Int64, range: LogRange)
    /// A record breaks the contract of its topic.
    case unreadableRecord(TopicPartition, offset: Int64, reason: String)
    /// A message needs something that this worker lacks.
    case paused(TopicPartition, offset: Int64, reason: OrderingMachine.Pause)

    /// The place, the cause and what to do.
    package var description: String {
        switch self {
        case .positionOutOfRange(let partition, let position, let range):
            """
            changes[\(partition)]: the tables stand at offset \(position), the log holds \(range.start) to \(range.end): \
            log and tables are not of one history; restore both from the same moment
            """
        case .otherMessages(let partition, let position):
            """
            changes[\(partition)]: the message before offset \(position) is not the one that the tables were brought to: the \
            topic was made anew; restore it, or begin a new history in an empty place
            """
        case .resultsLost(let partition, let position, let range):
            """
            ordered[\(partition)]: the tables hold results up to offset \(position), the log ends at \(range.end): \
            the log lost records; restore it, or remove the tables so that they are made again from changes
            """
        case .unreadableRecord(let partition, let offset, let reason):
            "\(partition) offset \(offset): the record cannot be read (\(reason)); nothing behind it is ordered"
        case .paused(let partition, let offset, let reason):
            "\(partition) offset \(offset): \(reason.explanation); nothing behind it is ordered until then"
        }
    }
}

extension OrderingMachine.Pause {
    /// What is missing, and what to do about it.
    var explanation: String {
        switch self {
        case .unknownSchema(let hash):
            "the message names schema version \(hash), which is not known here: control must name it"
        case .unknownSchemaNumber(let number):
            "the partition has reached schema version \(number), which is not known here: control must name it"
        case .unknownRules(let rules):
            "the message needs rules version \(rules), this worker knows \(RulesVersion.current): upgrade it"
        case .otherEpoch(let epoch):
            "the message is of history \(epoch): the topics were mixed up; restore the right ones"
        case .timeStampsExhausted: "the partition has used up all timeStamps below 2^53"
        case .invalidPart(let reason): "the message breaks the contract of changes: \(reason)"
        }
    }
}
