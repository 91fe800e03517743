import ChangeLog
import Metrics
import RecordStore
import SyncModel

/// The results of consecutive messages of one partition, published together and written together.
struct PendingStep: Sendable {
    /// Counts the steps of a worker.
    let number: Int
    /// The partition after the step.
    var state: PartitionState
    /// The rows written, in the order of their timeStamps; a row may come again in a later state.
    var rows: [OrderedRow] = []
    /// The outcomes to keep, in the order of the messages.
    var outcomes: [StoredOutcome] = []
    /// What became of the messages.
    var counts = OrderedCounts()
    /// Since it was decided.
    let watch = Stopwatch()
    /// What goes to `ordered`.
    var records: [NewRecord] = []
    /// What it takes of the overlay's bound, in bytes; a step without results, of repeats for example, takes memory too.
    private(set) var size = 1024
    /// Resolves when `ordered` has the records; `nil` when there are none.
    var receipt: AppendReceipt?

    init(number: Int, state: PartitionState) {
        self.number = number
        self.state = state
    }

    /// Takes in the result of the next message, and the records that tell of it.
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
    }
}

extension Outcome {
    /// About what it takes in memory, in bytes.
    fileprivate var memory: Int {
        var size = 256 + results.count * (MemoryLayout<ChangeResult>.stride + 16)
        for case .refused(_, let message) in results.lazy.map(\.status) { size += message.utf8.count }
        for refusal in summary?.refusals ?? [] { size += 64 + refusal.message.utf8.count }
        return size
    }
}
