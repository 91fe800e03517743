import ChangeLog
import Observability
import SyncModel

/// What the stage did or met, for metrics and logs.
package enum IngestEvent: Sendable {
    /// A partition of `uploads` is worked on from an offset on.
    case started(partition: Int, nextOffset: Int64)
    /// Records of a partition of `uploads` were checked and handed to the log; after a restart some come again.
    case admitted(partition: Int, IngestCounts)
    /// The log has all parts of a step's records, and the offset behind them is committed; the time is that since the
    /// records were read.
    case committed(partition: Int, nextOffset: Int64, after: Duration)
    /// A record breaks the contract of `uploads`; it went to `dead-letters`.
    case recordRefused(UploadReference, RecordRefusal)
    /// The log failed; the partition starts again from its committed offset after a while.
    case restarting(partition: Int, cause: ChangeLogError, after: Duration)
    /// The next record of a partition needs something newer than this worker, and nothing behind it is worked on: until its
    /// schema version is known, or else until another worker, or this one after a restart, gets the partition.
    case paused(partition: Int, cause: IngestError)
    /// The schema version that a partition waited for is known: it starts again from its committed offset.
    case resumed(partition: Int, schema: String)
    /// A worker that was told to end ended with an error; what it had not committed is done again by the next one.
    case endedUncommitted(partition: Int, cause: any Error)
}

/// How much was checked.
package struct IngestCounts: Sendable, Hashable {
    /// Records of `uploads`.
    package internal(set) var records = 0
    /// Changes in them.
    package internal(set) var changes = 0
    /// Changes refused, by code.
    package internal(set) var refusals: [RefusalCode: Int] = [:]

    /// Nothing yet.
    package init() {}

    mutating func add(_ admitted: Admission.Admitted) {
        records += 1
        changes += admitted.changeCount
        refusals.merge(admitted.refusals, uniquingKeysWith: +)
    }
}

extension IngestEvent {
    /// Writes the event as a log line: what needs somebody's attention as a warning, the rest for debugging.
    package func write(to logger: Logger) {
        switch self {
        case .started(let partition, let nextOffset):
            logger.debug(
                "A partition is worked on",
                [.topic: "uploads", .partition: .integer(partition), .offset: .integer(nextOffset)])
        case .committed: break
        case .admitted(let partition, let counts):
            logger.debug(
                "Records admitted",
                [.topic: "uploads", .partition: .integer(partition), .count: .integer(counts.records)])
        case .recordRefused(let upload, let refusal):
            logger.warning(
                "A record breaks the contract of uploads and went to dead-letters",
                [
                    .topic: "uploads", .partition: .integer(upload.partition), .offset: .integer(upload.offset),
                    .code: .string(refusal.code.rawValue), .reason: .string(refusal.reason),
                ])
        case .restarting(let partition, let cause, let delay):
            logger.warning(
                "The log failed; the partition starts again from its committed offset",
                [.topic: "uploads", .partition: .integer(partition), .duration: .duration(delay)], error: cause)
        case .paused(let partition, let cause) where cause.awaitsSchema:
            logger.warning(
                "A partition is paused until its schema version is known",
                [.topic: "uploads", .partition: .integer(partition)], error: cause)
        case .resumed(let partition, let schema):
            logger.notice(
                "A partition goes on: its schema version is known",
                [.topic: "uploads", .partition: .integer(partition), .schemaVersion: .string(schema)])
        case .paused(let partition, let cause):
            logger.critical(
                "A partition is paused", [.topic: "uploads", .partition: .integer(partition)], error: cause)
        case .endedUncommitted(let partition, let cause):
            logger.warning(
                "A partition was left before its offset was committed",
                [.topic: "uploads", .partition: .integer(partition)], error: cause)
        }
    }
}
