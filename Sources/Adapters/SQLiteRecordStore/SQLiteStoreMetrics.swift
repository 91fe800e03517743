import Metrics
import RecordStore

/// What the tables count.
package struct SQLiteStoreMetrics: Sendable {
    let readDuration: Histogram
    private let commitDuration: Histogram
    private let commitRows: Histogram
    private let commitSteps: Histogram
    private let failures: Counter

    /// Takes the numbers from a registry; by default from one that nobody looks at.
    package init(_ registry: MetricRegistry = MetricRegistry()) {
        readDuration = registry.histogram(.storeReadDuration)
        commitDuration = registry.histogram(.storeCommitDuration)
        commitRows = registry.histogram(.storeCommitRows)
        commitSteps = registry.histogram(.storeCommitSteps)
        failures = registry.counter(.storeCommitFailures)
    }

    /// Counts a transaction that was committed, and the calls in it that failed by themselves.
    func note(_ tickets: [CommitTicket], failed: Int, _ watch: Stopwatch) {
        commitDuration.record(watch.nanoseconds)
        var (steps, rows) = (0, 0)
        for step in tickets.lazy.flatMap(\.steps) {
            steps += 1
            rows += step.rows.count
        }
        commitSteps.record(steps)
        commitRows.record(rows)
        failures.add(failed)
    }

    /// Counts calls that failed.
    func noteFailure(_ tickets: [CommitTicket]) { failures.add(tickets.count) }
}
