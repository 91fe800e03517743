import RecordStore
import SyncModel
import Synchronization

/// Rows, device progress, applied changes and owners' usage that are ordered and published but not yet written to the tables (I5).
///
/// Each entry belongs to the step that changed it last and is removed when that step is written; until then it replaces what
/// the store has.
struct Overlay {
    private struct RowEntry {
        let row: OrderedRow
        let step: Int
    }

    private struct ProgressEntry {
        var highestBatch: Int64
        var step: Int
        var outcomes: [(outcome: Outcome, step: Int)]
    }

    private var rows: [RowKey: RowEntry] = [:]
    private var progress: [DeviceKey: ProgressEntry] = [:]
    /// Each of one step, since a change is applied once.
    private var applied: [AppliedChangeKey: AppliedChange] = [:]
    private var usage: [SyncID: (usage: OwnerUsage, step: Int)] = [:]

    /// The row after the newest step that touched it.
    func row(_ key: RowKey) -> OrderedRow? { rows[key]?.row }

    /// The change that steps not yet written applied.
    func appliedChange(_ key: AppliedChangeKey) -> AppliedChange? { applied[key] }

    /// What an owner has after the newest step that changed it.
    func usage(of owner: SyncID) -> OwnerUsage? { usage[owner]?.usage }

    /// Whether steps not yet written gave a device an outcome.
    func holds(_ key: DeviceKey) -> Bool { progress[key] != nil }

    /// The highest batch number that steps not yet written gave a device, 0 when none did.
    func highestBatch(of key: DeviceKey) -> Int64 { progress[key]?.highestBatch ?? 0 }

    /// A device's progress for a batch, from the unwritten steps; `nil` when they do not decide it.
    ///
    /// A batch above the highest is new, and one whose outcome is here is a repeat; of any other the tables may or may not
    /// have the outcome.
    func progress(of key: DeviceKey, batch: Int64) -> DeviceProgress? {
        guard let entry = progress[key] else { return nil }
        let outcome = entry.outcomes.last { $0.outcome.batch == batch }?.outcome
        guard outcome != nil || batch > entry.highestBatch else { return nil }
        return DeviceProgress(highestBatch: entry.highestBatch, outcome: outcome)
    }

    /// Adds the results of a part.
    mutating func add(_ result: OrderingMachine.Step, of key: DeviceKey, step: Int) {
        for row in result.written.lazy.map(\.row) { rows[row.key] = RowEntry(row: row, step: step) }
        for change in result.applied { applied[AppliedChangeKey(device: key, id: change.identity.id)] = change }
        if let now = result.usage { usage[key.owner] = (now, step) }
        guard let outcome = result.outcome else { return }
        var entry = progress[key] ?? ProgressEntry(highestBatch: 0, step: step, outcomes: [])
        entry.highestBatch = max(entry.highestBatch, outcome.batch)
        entry.step = step
        entry.outcomes.append((outcome, step))
        if entry.outcomes.count > Outcome.keptPerDevice { entry.outcomes.removeFirst() }
        progress[key] = entry
    }

    /// Removes the entries of a step that is written now.
    mutating func remove(_ step: PendingStep) {
        for row in step.rows {
            if let place = rows.index(forKey: row.key), rows[place].value.step == step.number { rows.remove(at: place) }
        }
        for stored in step.applied { applied[stored.changeKey] = nil }
        for owner in step.usage.keys where usage[owner]?.step == step.number { usage[owner] = nil }
        for stored in step.outcomes {
            guard var entry = progress[stored.key] else { continue }
            entry.outcomes.removeAll { $0.step <= step.number }
            progress[stored.key] = entry.step <= step.number ? nil : entry
        }
    }
}

/// How many bytes of results that the tables do not hold yet all partitions of a process may have together.
final class OverlayBudget: Sendable {
    private let limit: Int
    /// What a partition may have however much the others have, so that it need not wait for theirs to be written.
    private let share: Int
    private let size = Atomic(0)

    /// - Parameters:
    ///   - limit: in bytes.
    ///   - partitions: of the history; together their shares are the limit once more.
    init(limit: Int, partitions: Int) {
        self.limit = limit
        share = limit / max(1, partitions)
    }

    /// Adds bytes of a partition; subtracts where negative.
    func add(_ bytes: Int) { size.add(bytes, ordering: .relaxed) }

    /// Whether a partition that has so many bytes to write should write them first.
    func isFull(for bytes: Int) -> Bool { bytes >= share && size.load(ordering: .relaxed) > limit }
}
