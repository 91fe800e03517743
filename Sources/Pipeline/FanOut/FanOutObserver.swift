import FanOutLink
import SyncModel

/// Receives the events of a fan-out's partitions, for logs and metrics.
///
/// Called on several threads; must not block.
package protocol FanOutObserver: Sendable {
    func record(_ event: FanOutEvent, partition: Int)

    /// What a stream has applied; called when it was opened and after each step. Does nothing by default.
    func passed(_ report: StreamReport)
}

extension FanOutObserver {
    package func passed(_ report: StreamReport) {}
}

/// What happened to a partition of a fan-out.
package enum FanOutEvent: Sendable, Hashable, CustomStringConvertible {
    /// Its stream is open and serves pulls; `ordered` is followed from the offset on.
    case ready(owners: Int, nextOffset: Int64)
    /// Records of `ordered` were applied.
    ///
    /// `logTime` is the log's time of the newest, in microseconds since 1970.
    case applied(records: Int, rows: Int, nextOffset: Int64, logTime: Int64)
    /// Its file is missing or damaged, or the log no longer holds what comes next: it does not serve, and is rebuilt.
    case damaged(reason: String)
    /// Another process has written its file: it does not serve until the file was opened again.
    case reopening
    /// The progress of a rebuild: reported when it begins, where there are rows, and then at intervals of
    /// ``FanOutConfiguration/rebuildReports``.
    case rebuilding(RebuildProgress)
    /// The rebuild is done.
    case rebuilt(rows: Int)
    /// A failure, retried after the pause; an open stream continues to serve.
    case retrying(reason: String, after: Duration)
    /// It lacks a schema version and resumes when that is known; an open stream continues to serve.
    case waiting(reason: String)
    /// It cannot apply its next record, or not be built; it is tried again after longer pauses, and an open stream continues to serve.
    case paused(reason: String)
    /// It has got past what had paused it.
    case resumed
    /// It ended; with a problem, its file could not be closed, and the next start checks it.
    case stopped(problem: String?)

    package var description: String {
        switch self {
        case .ready(let owners, let nextOffset): "serves \(owners) owners, follows ordered from offset \(nextOffset)"
        case .applied(let records, let rows, let nextOffset, _):
            "applied \(records) records with \(rows) rows, up to offset \(nextOffset)"
        case .damaged(let reason): "must be rebuilt: \(reason)"
        case .reopening: "is being opened again: another process has written its file"
        case .rebuilding(let progress): "is being rebuilt: \(progress)"
        case .rebuilt(let rows): "was rebuilt with \(rows) rows"
        case .retrying(let reason, let pause): "tries again in \(pause): \(reason)"
        case .waiting(let reason): "is paused: \(reason)"
        case .paused(let reason): "is paused and tried again: \(reason)"
        case .resumed: "resumes"
        case .stopped(let problem): problem.map { "stopped, and its file could not be closed: \($0)" } ?? "stopped"
        }
    }
}
