/// Errors that every adapter states in the same words.
extension ChangeLogError {
    /// The object was closed.
    ///
    /// - Parameter what: its name in words, such as "the log".
    package static func closed(_ what: String, partition: TopicPartition? = nil) -> ChangeLogError {
        ChangeLogError(.closed, partition: partition, message: "\(what) was closed")
    }

    /// The log has no such topic or partition.
    package static func unknown(_ partition: TopicPartition) -> ChangeLogError {
        ChangeLogError(.unknownPartition, partition: partition, message: "the log has no such partition")
    }

    /// The partition does not hold the offset that was asked for.
    package static func outOfRange(_ offset: Int64, of partition: TopicPartition, _ range: LogRange) -> ChangeLogError {
        ChangeLogError(
            .outOfRange(range), partition: partition,
            message: "offset \(offset) is asked for, the log holds \(range.start) to \(range.end)")
    }

    /// The record is larger than the log takes.
    package static func tooLarge(_ record: NewRecord, maximum: Int) -> ChangeLogError {
        ChangeLogError(
            .recordTooLarge(maximum: maximum), partition: record.destination,
            message: "a record of \(record.key.count + record.value.count) bytes, at most \(maximum)")
    }

    /// A record before this one failed, so this one was not appended.
    package static var producerFailed: ChangeLogError {
        ChangeLogError(.producerFailed, message: "an earlier record of this producer failed: make a new one")
    }

    /// The partition went to another member.
    package static func fenced(_ partition: TopicPartition) -> ChangeLogError {
        ChangeLogError(.fenced, partition: partition, message: "the partition is not this worker's any more")
    }
}
