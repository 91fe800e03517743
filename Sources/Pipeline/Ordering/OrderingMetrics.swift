import Metrics
import SyncModel

/// What the stage counts.
package struct OrderingMetrics: Sendable {
    private let ordered: Counter
    private let repeated: Counter
    private let refused: Counter
    private let dropped: Counter
    private let applied: Counter
    private let deleted: Counter
    private let conflicts: Counter
    private let allRefusedChanges: Counter
    private let stepMessages: Histogram
    private let refusedChanges: [RefusalCode: Counter]
    let decideDuration: Histogram
    let writeDuration: Histogram
    let unwrittenBytes: Gauge
    let retries: Counter
    private let registry: MetricRegistry

    /// Takes the numbers from a registry; by default from one that nobody looks at.
    package init(_ registry: MetricRegistry = MetricRegistry()) {
        self.registry = registry
        func messages(_ outcome: String) -> Counter { registry.counter(.orderingMessages, [.outcome: outcome]) }
        func changes(_ outcome: String) -> Counter { registry.counter(.orderingChanges, [.outcome: outcome]) }
        ordered = messages("ordered")
        repeated = messages("repeated")
        refused = messages("refused")
        dropped = messages("dropped")
        applied = changes("applied")
        deleted = changes("deleted")
        conflicts = changes("conflict")
        allRefusedChanges = changes("refused")
        refusedChanges = Dictionary(
            uniqueKeysWithValues: RefusalCode.allCases.map {
                ($0, registry.counter(.orderingRefusedChanges, [.reason: $0.rawValue]))
            })
        stepMessages = registry.histogram(.orderingStepMessages)
        decideDuration = registry.histogram(.orderingDecideDuration)
        writeDuration = registry.histogram(.orderingWriteDuration)
        unwrittenBytes = registry.gauge(.orderingUnwrittenBytes)
        retries = registry.retries(of: .ordering)
    }

    /// Where a partition stands.
    func position(in partition: Int) -> Gauge { registry.position(of: .ordering, in: partition) }

    /// Whether a partition stands still.
    func paused(_ partition: Int) -> Gauge { registry.gauge(.orderingPaused, [.partition: "\(partition)"]) }

    /// Counts a step that was decided.
    func note(_ counts: OrderedCounts) {
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
        stepMessages.record(counts.messages)
    }
}

/// What became of the messages of a step, and of the changes in them.
struct OrderedCounts: Sendable {
    private(set) var ordered = 0
    private(set) var repeated = 0
    private(set) var refused = 0
    private(set) var dropped = 0
    private(set) var applied = 0
    private(set) var deleted = 0
    private(set) var conflicts = 0
    /// Changes refused, by code.
    private(set) var refusals: [RefusalCode: Int] = [:]

    /// All messages.
    var messages: Int { ordered + repeated + refused + dropped }

    /// Counts a message; `nil` for one that was seen before.
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
