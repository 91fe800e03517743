import ChangeLog
import Observability
import SyncModel

/// What the stage did or met, for metrics and logs.
package enum IngestEvent: Sendable {
    /// A partition of `uploads` is read from an offset.
    case started(partition: Int, nextOffset: Int64)
    /// Records of a partition of `uploads` were checked and enqueued; after a restart some are counted again.
    case admitted(partition: Int, IngestCounts)
    /// All parts of a step's records are durable, and the offset after them is committed; the duration is that since the
    /// records were read.
    case committed(partition: Int, nextOffset: Int64, after: Duration)
    /// A record breaks the contract of `uploads`, or is left out; it was appended to `dead-letters`.
    case recordRefused(UploadReference, RecordRefusal)
    /// The log failed; the partition restarts from its committed offset after a pause.
    case restarting(partition: Int, cause: any Error, after: Duration)
    /// A partition cannot be worked on, and no record after its committed offset is processed: until its schema version is known,
    /// or else until another attempt succeeds.
    case paused(partition: Int, cause: any Error)
    /// A partition that was paused is worked on again.
    case resumed(partition: Int)
    /// A cancelled worker ended with an error; the next one processes again what was not committed.
    case endedUncommitted(partition: Int, cause: any Error)
}

/// How many records and changes were checked.
package struct IngestCounts: Sendable, Hashable {
    package internal(set) var records = 0
    package internal(set) var changes = 0
    /// Changes refused, by code.
    package internal(set) var refusals: [RefusalCode: Int] = [:]
    /// Dead letters beyond their owner's quota.
    package internal(set) var droppedDeadLetters = 0

    package init() {}

    mutating func add(_ admitted: Admission.Admitted) {
        records += 1
        changes += admitted.changeCount
        refusals.merge(admitted.refusals, uniquingKeysWith: +)
    }
}

extension IngestEvent {
    /// Writes the event as a log line: what an operator should see as a warning or worse, the rest for debugging.
    package func write(to logger: Logger) {
        switch self {
        case .started(let partition, let nextOffset):
            logger.debug(
                "Reading the partition",
                [.topic: "uploads", .partition: .integer(partition), .offset: .integer(nextOffset)])
        case .committed: break
        case .admitted(let partition, let counts):
            logger.debug(
                "Records admitted",
                [.topic: "uploads", .partition: .integer(partition), .count: .integer(counts.records)])
        case .recordRefused(let upload, let refusal):
            logger.warning(
                refusal.code == .skipped
                    ? "A record is left out, as an operator decided; it was appended to dead-letters"
                    : "A record breaks the contract of uploads; it was appended to dead-letters",
                [
                    .topic: "uploads", .partition: .integer(upload.partition), .offset: .integer(upload.offset),
                    .code: .string(refusal.code.rawValue), .reason: .string(refusal.reason),
                ])
        case .restarting(let partition, let cause, let delay):
            logger.warning(
                "The log failed; the partition restarts from its committed offset",
                [.topic: "uploads", .partition: .integer(partition), .duration: .duration(delay)], error: cause)
        case .paused(let partition, let cause as IngestError) where cause.isOfSchema:
            logger.warning(
                "The partition is paused until its schema version is known",
                [.topic: "uploads", .partition: .integer(partition)], error: cause)
        case .resumed(let partition):
            logger.notice(
                "The partition resumes: the cause of its pause is gone",
                [.topic: "uploads", .partition: .integer(partition)])
        case .paused(let partition, let cause):
            logger.critical(
                "The partition is paused and tried again: its next record cannot be processed",
                [.topic: "uploads", .partition: .integer(partition)], error: cause)
        case .endedUncommitted(let partition, let cause):
            logger.warning(
                "The partition was released before its offset was committed; its next worker repeats the records",
                [.topic: "uploads", .partition: .integer(partition)], error: cause)
        }
    }
}
