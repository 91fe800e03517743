/// What went wrong in a log, where, and whether trying again may help.
package struct ChangeLogError: Error, Sendable, Hashable, CustomStringConvertible {
    /// What went wrong.
    package enum Code: Sendable, Hashable {
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
    package let code: Code
    /// Where, when it concerns one partition.
    package let partition: TopicPartition?
    /// The cause, for an operator.
    package let message: String
    /// Whether the same call may succeed later.
    package let isRetriable: Bool

    /// States an error.
    package init(_ code: Code, partition: TopicPartition? = nil, message: String, isRetriable: Bool = false) {
        self.code = code
        self.partition = partition
        self.message = message
        self.isRetriable = isRetriable
    }

    /// The place and the cause.
    package var description: String { partition.map { "\($0): \(message)" } ?? message }
}
