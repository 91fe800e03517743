import ChangeLog
import RecordStore
import SyncModel

/// The state of one partition between deciding and writing: a value that does no I/O.
///
/// ``PartitionWorker`` executes the effects that it returns. Steps pass through it in order: decided over the overlay, enqueued to
/// `ordered`, written to the tables (I5).
struct PartitionOrdering {
    /// What the worker does after a change of this state.
    struct Effects: Equatable {
        /// How many bytes more (or fewer) wait for the tables.
        var unwrittenBytes = 0
        /// Wakes the task that waits for steps to be written.
        var wakesReader = false
        /// Wakes the task that waits for steps to write.
        var wakesWriter = false
    }

    /// What the writing task does next.
    enum NextWrite {
        /// Writes these steps, in one transaction.
        case write([PendingStep])
        /// Waits for a step.
        case wait
        /// Ends: ordering has ended, and every step was taken.
        case end
    }

    let partition: Int
    let machine: OrderingMachine
    /// The largest piece of a result in `ordered`, in bytes.
    let pieceSize: Int
    /// The size of the rows that a step may read, and of its results, in bytes.
    let maximumRowBytes: Int
    /// The average size of the rows read lately, in bytes.
    var averageRowBytes = 1024
    /// The partition after the newest step decided.
    var state: PartitionState
    var overlay = Overlay()
    var stepNumber = 0
    /// The position of the tables; `nil` where they hold nothing of the partition.
    private(set) var stored: StoredPosition?
    /// The position that is being written.
    private var writing: StoredPosition?
    /// Every position that this worker may have given the tables since it began to read ahead.
    private var ownPositions: [StoredPosition?] = []
    /// Steps enqueued to `ordered` and not taken by the writing task; bounded through `unwrittenBytes`.
    private var pending: [PendingStep] = []
    /// The size of all steps that are not written yet.
    private(set) var unwrittenBytes = 0
    /// Whether more steps may come.
    private(set) var isOrdering = true

    init(partition: Int, history: History, stored: StoredPosition?, maximumRowBytes: Int) {
        self.partition = partition
        machine = OrderingMachine(history)
        pieceSize = history.pieceSize
        self.maximumRowBytes = maximumRowBytes
        state = stored?.state ?? PartitionState()
        self.stored = stored
    }

    // MARK: Waiting

    /// Whether the next read waits until steps are written: the backlog then stays in the log (I10).
    ///
    /// Without unwritten steps of its own a partition never waits, so that one whose tables are away delays no other: each
    /// may have one step, however full the budget is.
    func mustWait(isBudgetFull: Bool) -> Bool { unwrittenBytes > 0 && isBudgetFull && isOrdering }

    /// Whether steps must be written before the tables hold all that was decided.
    var mustWaitUntilWritten: Bool { unwrittenBytes > 0 && isOrdering }

    // MARK: Steps

    /// Adds a step whose records were enqueued.
    mutating func add(_ step: PendingStep) -> Effects {
        pending.append(step)
        unwrittenBytes += step.size
        return Effects(unwrittenBytes: step.size, wakesWriter: true)
    }

    /// Takes all steps that wait.
    mutating func takeSteps() -> NextWrite {
        if pending.isEmpty { return isOrdering ? .wait : .end }
        defer { pending = [] }
        return .write(pending)
    }

    /// The transaction of some steps, each row in its newest state.
    ///
    /// - Parameter orderedOffset: the position in `ordered` that belongs to the tables after them.
    mutating func beginWrite(_ steps: [PendingStep], orderedOffset: Int64) -> StoreStep {
        var rows = [RowKey: OrderedRow](minimumCapacity: steps.reduce(0) { $0 + $1.rows.count })
        var outcomes: [StoredOutcome] = []
        var applied: [StoredAppliedChange] = []
        var usage: [SyncID: OwnerUsage] = [:]
        for step in steps {
            for row in step.rows { rows[row.key] = row }
            outcomes += step.outcomes
            applied += step.applied
            usage.merge(step.usage) { _, newer in newer }
        }
        let position = StoredPosition(state: steps.last?.state ?? state, orderedOffset: orderedOffset)
        writing = position
        ownPositions.append(position)
        return StoreStep(
            partition: partition, expected: stored, position: position, rows: Array(rows.values), outcomes: outcomes,
            applied: applied, usage: usage)
    }

    /// Removes steps that were written.
    mutating func endWrite(_ steps: [PendingStep], at position: StoredPosition) -> Effects {
        writing = nil
        stored = position
        var size = 0
        for step in steps {
            overlay.remove(step)
            size += step.size
        }
        unwrittenBytes -= size
        return Effects(unwrittenBytes: -size, wakesReader: true)
    }

    /// No step comes any more: both tasks may end.
    mutating func endOrdering() -> Effects {
        isOrdering = false
        return Effects(wakesReader: true, wakesWriter: true)
    }

    /// Gives back the bytes of the steps that were not written, once both tasks have ended.
    mutating func releaseUnwritten() -> Effects {
        defer { unwrittenBytes = 0 }
        return Effects(unwrittenBytes: -unwrittenBytes)
    }

    // MARK: Positions

    /// Notes which positions the tables may have while they are read.
    mutating func beginReading() {
        ownPositions = [stored]
        if let writing { ownPositions.append(writing) }
    }

    /// Whether what was read since ``beginReading()`` is not another worker's, given the tables' position at or after the reads.
    func isOwn(_ position: StoredPosition?) -> Bool { ownPositions.contains(position) }
}
