import Metrics
import PartitionSupervision
import SyncModel

/// The metrics of the stage.
package struct OrderingMetrics: Sendable {
    private let ordered: Counter
    private let repeated: Counter
    private let refused: Counter
    private let dropped: Counter
    private let applied: Counter
    private let deleted: Counter
    private let conflicts: Counter
    private let allRefusedChanges: Counter
    private let copiedBytes: Counter
    private let stepMessages: Histogram
    private let refusedChanges: [RefusalCode: Counter]
    let decideDuration: Histogram
    let writeDuration: Histogram
    let unwrittenBytes: Gauge
    private let registry: MetricRegistry

    package init(_ registry: MetricRegistry = MetricRegistry()) {
        self.registry = registry
        func parts(_ outcome: String) -> Counter { registry.counter(.orderingMessages, [.outcome: outcome]) }
        func changes(_ outcome: String) -> Counter { registry.counter(.orderingChanges, [.outcome: outcome]) }
        ordered = parts("ordered")
        repeated = parts("repeated")
        refused = parts("refused")
        dropped = parts("dropped")
        applied = changes("applied")
        deleted = changes("deleted")
        conflicts = changes("conflict")
        allRefusedChanges = changes("refused")
        refusedChanges = Dictionary(
            uniqueKeysWithValues: RefusalCode.allCases.map {
                ($0, registry.counter(.orderingRefusedChanges, [.reason: $0.rawValue]))
            })
        copiedBytes = registry.counter(.orderingCopiedBytes)
        stepMessages = registry.histogram(.orderingStepMessages)
        decideDuration = registry.histogram(.orderingDecideDuration)
        writeDuration = registry.histogram(.orderingWriteDuration)
        unwrittenBytes = registry.gauge(.orderingUnwrittenBytes)
    }

    /// The offset of the next record of a partition.
    func position(in partition: Int) -> Gauge { registry.position(of: .ordering, in: partition) }

    func supervision(of partition: Int) -> PartitionMetrics {
        PartitionMetrics(
            retries: registry.retries(of: .ordering),
            paused: registry.gauge(.orderingPaused, [.partition: "\(partition)"]), position: position(in: partition))
    }

    /// Counts a step that was decided.
    func record(_ counts: OrderedCounts) {
        ordered.add(counts.ordered)
        repeated.add(counts.repeated)
        refused.add(counts.refused)
        dropped.add(counts.dropped)
        applied.add(counts.applied)
        deleted.add(counts.deleted)
        conflicts.add(counts.conflicts)
        for (code, count) in counts.refusals {
            refusedChanges[code]?.add(count)
            allRefusedChanges.add(count)
        }
        copiedBytes.add(counts.copiedBytes)
        stepMessages.record(counts.messages)
    }
}

/// How many parts of a step, and changes in them, came to each result.
struct OrderedCounts: Sendable {
    private(set) var ordered = 0
    private(set) var repeated = 0
    private(set) var refused = 0
    private(set) var dropped = 0
    private(set) var applied = 0
    private(set) var deleted = 0
    private(set) var conflicts = 0
    /// Of rows' values, to decide the changes.
    var copiedBytes = 0
    /// By code.
    private(set) var refusals: [RefusalCode: Int] = [:]

    var messages: Int { ordered + repeated + refused + dropped }

    /// Counts a part; `nil` for one that was seen before.
    mutating func add(_ decision: OrderingDecision?) {
        switch decision {
        case .ordered(let results, _):
            ordered += 1
            for result in results { add(result.status) }
        case .repeated: repeated += 1
        case .refused: refused += 1
        case nil: dropped += 1
        }
    }

    private mutating func add(_ status: ChangeResult.Status) {
        switch status {
        case .applied: applied += 1
        case .deleted: deleted += 1
        case .conflict: conflicts += 1
        case .refused(let code, _): refusals[code, default: 0] += 1
        }
    }
}
