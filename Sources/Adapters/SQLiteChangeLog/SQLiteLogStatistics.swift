import ChangeLog
import LocalLog
import Synchronization

/// What a log has written since it was opened.
package struct SQLiteLogStatistics: Sendable, Hashable {
    /// Transactions, each of which cost one fsync.
    package internal(set) var transactions = 0
    /// Calls of producers that they carried.
    package internal(set) var appends = 0
    /// Records.
    package internal(set) var records = 0
    /// Bytes of keys and values.
    package internal(set) var bytes = 0
}

/// Counts what the writer writes.
final class WriteCounters: Sendable {
    private let state = Mutex(SQLiteLogStatistics())

    var statistics: SQLiteLogStatistics { state.withLock { $0 } }

    func add(_ work: LogWork) {
        guard !work.appends.isEmpty else { return }
        state.withLock { state in
            state.transactions += 1
            state.appends += work.appends.count
            for append in work.appends {
                state.records += append.records.count
                for record in append.records { state.bytes += record.key.count + record.value.count }
            }
        }
    }
}
