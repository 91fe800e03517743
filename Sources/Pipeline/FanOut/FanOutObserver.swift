import SyncModel

/// Is told what happens to a fan-out's partitions, for logs and metrics.
///
/// Calls come from several threads and must return at once.
package protocol FanOutObserver: Sendable {
    /// Takes note of an event in a partition.
    func record(_ event: FanOutEvent, partition: Int)

    /// Takes note that the results of all uploads of the partition up to this one can be pulled; by default does nothing.
    func passed(_ upload: UploadReference)
}

extension FanOutObserver {
    /// Does nothing.
    package func passed(_ upload: UploadReference) {}
}

/// What happened to a partition of a fan-out.
package enum FanOutEvent: Sendable, Hashable, CustomStringConvertible {
    /// Its stream is open and serves pulls; `ordered` is followed from the offset on.
    case ready(owners: Int, nextOffset: Int64)
    /// Records of `ordered` were applied.
    ///
    /// `logTime` is the moment, in microseconds since 1970, at which the log took the newest of them.
    case applied(records: Int, rows: Int, nextOffset: Int64, logTime: Int64)
    /// Its file is missing or damaged, or the log no longer holds what comes next: it does not serve, and is rebuilt.
    case damaged(reason: String)
    /// The rebuild goes on: told when it begins, where there are rows, and then every
    /// ``FanOutConfiguration/rebuildReports``.
    case rebuilding(RebuildProgress)
    /// The rebuild is done.
    case rebuilt(rows: Int)
    /// Something failed and is tried again after the pause; a stream that is open goes on serving.
    case retrying(reason: String, after: Duration)
    /// It lacks a schema version and goes on by itself when that is known; a stream that is open goes on serving.
    case waiting(reason: String)
    /// It ended; with a problem, its file could not be closed, which the next start's check sees to.
    case stopped(problem: String?)

    /// The event in words.
    package var description: String {
        switch self {
        case .ready(let owners, let nextOffset): "serves \(owners) owners, follows ordered from offset \(nextOffset)"
        case .applied(let records, let rows, let nextOffset, _):
            "applied \(records) records with \(rows) rows, up to offset \(nextOffset)"
        case .damaged(let reason): "must be rebuilt: \(reason)"
        case .rebuilding(let progress): "is being rebuilt: \(progress)"
        case .rebuilt(let rows): "was rebuilt with \(rows) rows"
        case .retrying(let reason, let pause): "tries again in \(pause): \(reason)"
        case .waiting(let reason): "is paused: \(reason)"
        case .stopped(let problem): problem.map { "stopped, and its file could not be closed: \($0)" } ?? "stopped"
        }
    }
}
