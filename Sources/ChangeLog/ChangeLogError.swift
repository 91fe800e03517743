/// What went wrong in a log, where, and whether trying again may help.
public struct ChangeLogError: Error, Sendable, Hashable, CustomStringConvertible {
    /// What went wrong.
    public enum Code: Sendable, Hashable {
        /// The offset is not in the range that the partition holds.
        case outOfRange(LogRange)
        /// No such topic or partition.
        case unknownPartition
        /// A record is larger than the log takes.
        case recordTooLarge(maximum: Int)
        /// No room on the disk.
        case storageFull
        /// The files cannot be written: permissions, or a read-only file system.
        case readOnly
        /// The files are damaged.
        case corrupt
        /// Reading or writing failed.
        case inputOutput
        /// An earlier record of this producer failed: replace it.
        case producerFailed
        /// The partition is another member's now.
        case fenced
        /// The log, producer, reader or membership was closed.
        case closed
        /// What the log said, where no other code fits.
        case other
    }

    /// What went wrong.
    public let code: Code
    /// Where, when it concerns one partition.
    public let partition: TopicPartition?
    /// The cause, for an operator.
    public let message: String
    /// Whether the same call may succeed later.
    public let isRetriable: Bool

    /// States an error.
    public init(_ code: Code, partition: TopicPartition? = nil, message: String, isRetriable: Bool = false) {
        self.code = code
        self.partition = partition
        self.message = message
        self.isRetriable = isRetriable
    }

    /// The place and the cause.
    public var description: String { partition.map { "\($0): \(message)" } ?? message }
}
