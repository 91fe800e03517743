import Metrics
import RecordStore
import RelationalTables

package struct SQLiteStoreMetrics: Sendable {
    let readDuration: Histogram
    private let commitDuration: Histogram
    private let commitRows: Histogram
    private let commitSteps: Histogram
    private let failures: Counter

    package init(_ registry: MetricRegistry = MetricRegistry()) {
        readDuration = registry.histogram(.storeReadDuration)
        commitDuration = registry.histogram(.storeCommitDuration)
        commitRows = registry.histogram(.storeCommitRows)
        commitSteps = registry.histogram(.storeCommitSteps)
        failures = registry.counter(.storeCommitFailures)
    }

    /// Counts a committed transaction, and the calls in it that failed.
    func record(_ commits: [PendingCommit], failed: Int, _ watch: Stopwatch) {
        commitDuration.record(watch.nanoseconds)
        var (steps, rows) = (0, 0)
        for step in commits.lazy.flatMap(\.steps) {
            steps += 1
            rows += step.rows.count
        }
        commitSteps.record(steps)
        commitRows.record(rows)
        failures.add(failed)
    }

    func recordFailure(_ commits: [PendingCommit]) { failures.add(commits.count) }
}
