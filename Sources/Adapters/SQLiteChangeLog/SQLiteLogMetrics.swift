import ChangeLog
import LocalLog
import Metrics

/// What the log counts.
package struct SQLiteLogMetrics: Sendable {
    private let writeDuration: Histogram
    private let syncDuration: Histogram
    private let groupRecords: Histogram
    private let groupBytes: Histogram
    private let failures: Counter

    /// Takes the numbers from a registry; by default from one that nobody looks at.
    package init(_ registry: MetricRegistry = MetricRegistry()) {
        writeDuration = registry.histogram(.logWriteDuration)
        syncDuration = registry.histogram(.logSyncDuration)
        groupRecords = registry.histogram(.logGroupRecords)
        groupBytes = registry.histogram(.logGroupBytes)
        failures = registry.counter(.logWriteFailures)
    }

    /// Counts a transaction that is durable; those of offsets alone carry no records and are left out.
    func note(_ work: LogWork, _ watch: Stopwatch, beforeCommit nanoseconds: Int) {
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

    /// Counts a transaction that failed.
    func noteFailure() { failures.add() }
}
