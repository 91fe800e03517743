import ChangeLog
import FanOutLink
import Metrics
import PartitionSupervision
import SyncModel

package struct FanOutMetrics: Sendable {
    private let applyDuration: Histogram
    private let applyRecords: Histogram
    private let rows: Counter
    private let rebuilds: Counter
    private let retries: Counter
    let idlePulls: Counter
    private let pullDuration: Histogram
    private let readPulls: Counter
    private let failedPulls: Counter
    private let pageRows: Histogram
    private let pageBytes: Histogram
    let pullRecords: Histogram
    let comparedHeads: Counter
    let logTruncations: Counter
    private let uploadToPullable: Histogram
    private let registry: MetricRegistry
    private let now: @Sendable () -> Int64

    /// By default in a registry of its own, which is not served.
    ///
    /// - Parameter now: the wall clock to compare log timestamps with, microseconds since 1970.
    package init(
        _ registry: MetricRegistry = MetricRegistry(), now: @escaping @Sendable () -> Int64 = WallClock.microseconds
    ) {
        self.registry = registry
        self.now = now
        applyDuration = registry.histogram(.fanOutApplyDuration)
        applyRecords = registry.histogram(.fanOutApplyRecords)
        rows = registry.counter(.fanOutRows)
        rebuilds = registry.counter(.fanOutRebuilds)
        retries = registry.retries(of: .fanOut)
        idlePulls = registry.counter(.fanOutPulls, [.outcome: "idle"])
        readPulls = registry.counter(.fanOutPulls, [.outcome: "read"])
        failedPulls = registry.counter(.fanOutPulls, [.outcome: "failed"])
        pullDuration = registry.histogram(.fanOutPullDuration)
        pageRows = registry.histogram(.fanOutPageRows)
        pageBytes = registry.histogram(.fanOutPageBytes)
        logTruncations = registry.counter(.fanOutLogTruncations)
        pullRecords = registry.histogram(.fanOutPullRecords)
        comparedHeads = registry.counter(.fanOutComparedHeads)
        uploadToPullable = registry.histogram(.uploadToPullable)
    }

    /// To be called before the transaction is published.
    func record(_ applied: AppliedRecords, _ watch: Stopwatch) {
        applyDuration.record(watch.nanoseconds)
        applyRecords.record(applied.pieces.count)
        rows.add(applied.rowCount)
        let now = now()
        // The last piece completes the result of a batch.
        for piece in applied.pieces where piece.isLast {
            uploadToPullable.record(Int(max(0, now - piece.logTime)) * 1000)
        }
    }

    func record(_ pages: [OwnerPage], _ watch: Stopwatch) {
        readPulls.add()
        pullDuration.record(watch.nanoseconds)
        let size = pages.size
        pageRows.record(size.rows)
        pageBytes.record(size.bytes)
    }

    /// Rows that were asked for by id or by time count as a pull.
    func record(_ listing: StreamRows, _ watch: Stopwatch) {
        readPulls.add()
        pullDuration.record(watch.nanoseconds)
        pageRows.record(listing.rows.count)
        pageBytes.record(listing.rows.reduce(0) { $0 + $1.json.count })
    }

    func recordFailedPull(_ watch: Stopwatch) {
        failedPulls.add()
        pullDuration.record(watch.nanoseconds)
    }

    struct Partition: Sendable {
        fileprivate let position: Gauge
        fileprivate let serving: Gauge
        fileprivate let rebuilds: Counter
        fileprivate let rebuildRows: Gauge
        fileprivate let rebuildExpectedRows: Gauge
        /// Updated by the supervisor.
        let supervision: PartitionMetrics

        func record(_ event: FanOutEvent) {
            switch event {
            case .ready(_, let nextOffset):
                position.set(Int(nextOffset))
                serving.set(1)
            case .applied(_, _, let nextOffset, _): position.set(Int(nextOffset))
            case .damaged, .reopening: stopServing()
            case .stopped:
                stopServing()
                position.forget()
                endRebuild()
            case .rebuilt:
                rebuilds.add()
                endRebuild()
            case .retrying, .paused: endRebuild()
            case .waiting, .resumed, .rebuilding: break
            }
        }

        func record(_ progress: RebuildProgress) {
            rebuildRows.set(progress.done)
            rebuildExpectedRows.set(progress.total)
        }

        private func endRebuild() {
            rebuildRows.set(0)
            rebuildExpectedRows.set(0)
        }

        func stopServing() { serving.set(0) }
    }

    func partition(_ number: Int) -> Partition {
        Partition(
            position: registry.position(of: .fanOut, in: number),
            serving: registry.gauge(.fanOutServing, [.partition: "\(number)"]),
            rebuilds: rebuilds,
            rebuildRows: registry.gauge(.fanOutRebuildRows, [.partition: "\(number)"]),
            rebuildExpectedRows: registry.gauge(.fanOutRebuildExpectedRows, [.partition: "\(number)"]),
            supervision: PartitionMetrics(
                retries: retries, paused: registry.gauge(.fanOutPaused, [.partition: "\(number)"])))
    }
}
