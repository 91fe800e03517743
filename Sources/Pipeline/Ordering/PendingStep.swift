import ChangeLog
import Metrics
import RecordStore
import SyncModel

/// The results of consecutive parts of one partition, published together and written together.
struct PendingStep: Sendable {
    /// Counts the steps of a worker.
    let number: Int
    /// The partition after the step.
    var state: PartitionState
    /// The rows written, in the order of their timeStamps; a row may come again in a later state.
    var rows: [OrderedRow] = []
    /// The outcomes to keep, in the order of the parts.
    var outcomes: [StoredOutcome] = []
    /// The applied changes to keep.
    var applied: [StoredAppliedChange] = []
    /// What owners have after the step, where it changed that.
    var usage: [SyncID: OwnerUsage] = [:]
    var counts = OrderedCounts()
    /// Since it was decided.
    let watch = Stopwatch()
    /// The records of `ordered`; empty once they are enqueued.
    var records: [NewRecord] = []
    /// Its share of the overlay's budget, in bytes; a step without results, of repeats for example, takes memory too.
    private(set) var size = 1024
    /// Resolve when `ordered` has the records, one for each append; none when there are none.
    var receipts: [AppendReceipt] = []
    /// The turn of its one part, where that is a large one.
    var turn: LargePartTurns.Turn?

    init(number: Int, state: PartitionState) {
        self.number = number
        self.state = state
    }

    /// Adds the result of the next part, and its records.
    mutating func add(_ step: OrderingMachine.Step, _ newRecords: [NewRecord], key: DeviceKey) {
        state = step.state
        counts.add(step.decision)
        records += newRecords
        for written in step.written {
            rows.append(written.row)
            size += written.row.values.bytes.count + 512
        }
        if let outcome = step.outcome {
            outcomes.append(StoredOutcome(key: key, outcome: outcome))
            size += outcome.memory
        }
        if let now = step.usage { usage[key.owner] = now }
        for change in step.applied {
            applied.append(StoredAppliedChange(key: key, change: change))
            // Here and in the overlay.
            size += 320
        }
    }
}

extension Outcome {
    /// About its size in memory, in bytes.
    fileprivate var memory: Int {
        var size = 256 + results.count * (MemoryLayout<ChangeResult>.stride + 16)
        for case .refused(_, let message) in results.lazy.map(\.status) { size += message.utf8.count }
        for refusal in summary?.refusals ?? [] { size += 64 + refusal.message.utf8.count }
        return size
    }
}
