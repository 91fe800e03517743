import Metrics
import SyncModel

/// What the stage counts.
public struct OrderingMetrics: Sendable {
    let messages: [OrderedCounts.Message: Counter]
    let changes: [OrderedCounts.Change: Counter]
    let refusedChanges: [RefusalCode: Counter]
    let stepMessages: Histogram
    let decideDuration: Histogram
    let writeDuration: Histogram
    let unwrittenBytes: Gauge
    let retries: Counter
    private let registry: MetricRegistry

    /// Takes the numbers from a registry; by default from one that nobody looks at.
    public init(_ registry: MetricRegistry = MetricRegistry()) {
        self.registry = registry
        messages = Dictionary(
            uniqueKeysWithValues: OrderedCounts.Message.allCases.map {
                ($0, registry.counter(.orderingMessages, [.outcome: $0.rawValue]))
            })
        changes = Dictionary(
            uniqueKeysWithValues: OrderedCounts.Change.allCases.map {
                ($0, registry.counter(.orderingChanges, [.outcome: $0.rawValue]))
            })
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
        for (message, count) in counts.messages { messages[message]?.add(count) }
        for (change, count) in counts.changes { changes[change]?.add(count) }
        for (code, count) in counts.refusals { refusedChanges[code]?.add(count) }
        stepMessages.record(counts.messages.values.reduce(0, +))
    }
}

/// What became of the messages of a step, and of the changes in them.
struct OrderedCounts: Sendable {
    /// What became of a message.
    enum Message: String, CaseIterable {
        case ordered, repeated, refused, dropped
    }

    /// What became of a change.
    enum Change: String, CaseIterable {
        case applied, deleted, conflict, refused
    }

    private(set) var messages: [Message: Int] = [:]
    private(set) var changes: [Change: Int] = [:]
    private(set) var refusals: [RefusalCode: Int] = [:]

    /// Counts a message; `nil` for one that was seen before.
    mutating func add(_ verdict: Verdict?) {
        switch verdict {
        case .ordered(let results, _):
            messages[.ordered, default: 0] += 1
            add(results)
        case .repeated: messages[.repeated, default: 0] += 1
        case .refused: messages[.refused, default: 0] += 1
        case nil: messages[.dropped, default: 0] += 1
        }
    }

    private mutating func add(_ results: [ChangeResult]) {
        var (applied, deleted, conflicts, refused) = (0, 0, 0, 0)
        for result in results {
            switch result.status {
            case .applied: applied += 1
            case .deleted: deleted += 1
            case .conflict: conflicts += 1
            case .refused(let code, _):
                refused += 1
                refusals[code, default: 0] += 1
            }
        }
        for (change, count) in [
            (Change.applied, applied), (.deleted, deleted), (.conflict, conflicts), (.refused, refused),
        ]
        where count > 0 { changes[change, default: 0] += count }
    }
}
