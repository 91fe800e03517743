import ChangeLog
import LocalLog
import Metrics
import Synchronization

package struct SQLiteLogMetrics: Sendable {
    private let writeDuration: Histogram
    private let syncDuration: Histogram
    private let groupRecords: Histogram
    private let groupBytes: Histogram
    private let failures: Counter

    package init(_ registry: MetricRegistry = MetricRegistry()) {
        writeDuration = registry.histogram(.logWriteDuration)
        syncDuration = registry.histogram(.logSyncDuration)
        groupRecords = registry.histogram(.logGroupRecords)
        groupBytes = registry.histogram(.logGroupBytes)
        failures = registry.counter(.logWriteFailures)
    }

    /// Counts a durable transaction, unless it has no records but only offsets.
    func record(_ work: LogWork, _ watch: Stopwatch, beforeCommit nanoseconds: Int) {
        if work.appends.isEmpty { return }
        let duration = watch.nanoseconds
        writeDuration.record(duration)
        syncDuration.record(duration - nanoseconds)
        var (count, bytes) = (0, 0)
        for append in work.appends {
            count += append.records.count
            for record in append.records { bytes += record.key.count + record.value.count }
        }
        groupRecords.record(count)
        groupBytes.record(bytes)
    }

    func recordFailure() { failures.add() }
}

/// What the log has written since it was opened.
package struct SQLiteLogStatistics: Sendable, Hashable {
    /// Each cost one fsync.
    package internal(set) var transactions = 0
    package internal(set) var appends = 0
    package internal(set) var records = 0
    /// Of keys and values.
    package internal(set) var bytes = 0
}

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
