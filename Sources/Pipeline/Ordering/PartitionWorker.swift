import AsyncPrimitives
import ChangeLog
import Metrics
import Observability
import RecordStore
import SyncModel
import SyncWire

/// Orders one partition of `changes`: reads, decides, publishes to `ordered`, writes the tables, in this order (I5).
///
/// Two tasks share the actor. One reads messages and goes on over the overlay as soon as its results are enqueued; the
/// other waits until `ordered` has them and writes rows and position in one transaction. Neither awaits anything between
/// looking at what they share and suspending, so no wake-up is lost.
actor PartitionWorker<Log: ChangeLog, Store: RecordStore> {
    let partition: Int
    private let log: Log
    let store: Store
    let machine: OrderingMachine
    let pieceSize: Int
    let schemas: @Sendable () -> SchemaHistory
    private let configuration: OrderingConfiguration
    private let clock: any Clock<Duration>
    private let logger: Logger
    private let room: OverlayBudget
    private let hasFailed: @Sendable (Int, any Error) -> Void
    private let metrics: OrderingMetrics
    private let position: Gauge

    /// The partition behind the newest step decided.
    var state = PartitionState()
    var overlay = Overlay()
    var stepNumber = 0
    /// Where the tables stand.
    private var stored: StoredPosition?
    /// The step that is being written.
    private var writing: StoredPosition?
    /// Where this worker itself may have brought the tables since it began to read ahead.
    private var ownPositions: [StoredPosition?] = []
    /// Steps enqueued and not taken by the writing task; `pendingSize` bounds them.
    private var pending: [PendingStep] = []
    /// The size of all steps that are not written yet.
    private var pendingSize = 0
    private var isOrdering = true
    /// The reading task, while it waits for steps to be written.
    private var waitingForRoom: CheckedContinuation<Void, Never>?
    /// The writing task, while it waits for steps.
    private var waitingForWork: CheckedContinuation<Void, Never>?

    init(
        partition: Int, log: Log, store: Store, history: History, schemas: @escaping @Sendable () -> SchemaHistory,
        configuration: OrderingConfiguration, room: OverlayBudget, clock: any Clock<Duration>, logger: Logger,
        metrics: OrderingMetrics, hasFailed: @escaping @Sendable (Int, any Error) -> Void
    ) {
        self.partition = partition
        self.log = log
        self.store = store
        machine = OrderingMachine(epoch: history.epoch, clock: history.clock)
        pieceSize = history.pieceSize
        self.schemas = schemas
        self.configuration = configuration
        self.clock = clock
        self.logger = logger
        self.metrics = metrics
        self.room = room
        self.hasFailed = hasFailed
        position = metrics.position(in: partition)
    }

    /// Orders until the task is cancelled; what is published by then is written before this returns.
    ///
    /// Called once.
    func run() async throws {
        stored = try await store.position(of: partition)
        state = stored?.state ?? PartitionState()
        position.set(Int(state.nextOffset))
        try await checkPosition()
        try checkSchema()
        let reader = try await reader()
        let producer: Log.Producer
        do {
            producer = try await log.producer()
        } catch {
            await reader.close()
            throw error
        }
        let (ordered, written) = await work(reader, producer)
        await reader.close()
        await producer.close()
        addPending(-pendingSize)
        // What failed in writing came first in the log's order, and may be why ordering ended.
        try written.get()
        try ordered.get()
    }

    private typealias Ending = Result<Void, any Error>

    /// Runs both tasks until they have ended.
    private func work(_ reader: Log.Reader, _ producer: Log.Producer) async -> (ordered: Ending, written: Ending) {
        let ordering = Task {
            defer { endOrdering() }
            try await order(from: reader, to: producer)
        }
        // Not cancelled with the worker: what was published is written. It ends once ordering has.
        let writing = Task {
            do {
                try await write()
            } catch {
                ordering.cancel()
                endOrdering()
                throw error
            }
        }
        return await withTaskCancellationHandler {
            (await ordering.result, await writing.result)
        } onCancel: {
            ordering.cancel()
        }
    }

    /// A position outside the log's range stops the worker with an explanation (I1); so do results that `ordered` lost (I5).
    private func checkPosition() async throws {
        let changes = try await log.range(of: TopicPartition(.changes, partition))
        guard changes.start...changes.end ~= state.nextOffset else {
            throw OrderingError.positionOutOfRange(partition: partition, position: state.nextOffset, range: changes)
        }
        let ordered = try await log.range(of: TopicPartition(.ordered, partition))
        let orderedOffset = stored?.orderedOffset ?? 0
        if orderedOffset > ordered.end {
            guard try await holdsNothingOlder(ordered) else {
                throw OrderingError.resultsLost(partition: partition, position: orderedOffset, range: ordered)
            }
            try await moveResults(to: ordered.start)
        }
    }

    /// A reader at the next message, which follows the one that the tables were brought to last.
    private func reader() async throws -> Log.Reader {
        let place = TopicPartition(.changes, partition)
        guard let reader = try await log.reader(of: place, from: state.nextOffset, following: isOrdered) else {
            throw OrderingError.otherMessages(partition: partition, position: state.nextOffset)
        }
        return reader
    }

    /// Whether a message is one that the tables have been brought past.
    private func isOrdered(_ record: LogRecord) -> Bool {
        do {
            let part = try ChangePart(decoding: record.value)
            return part.epoch.utf8.elementsEqual(machine.epoch.utf8) && state.hasSeen(part)
        } catch {
            // Nothing gets past a message that cannot be read.
            return false
        }
    }

    /// Whether `ordered` was made anew: it begins with what becomes of messages that the tables do not hold.
    ///
    /// Then nothing is missing between the two, and streams that had more are made again from the tables.
    private func holdsNothingOlder(_ ordered: LogRange) async throws -> Bool {
        if ordered.start == ordered.end { return true }
        let reader = try await log.reader(of: TopicPartition(.ordered, partition), from: ordered.start)
        let first = await Result.capturing { try await reader.next(maximumBytes: 1).first }
        await reader.close()
        guard let record = try first.get() else { return false }
        do {
            return try OrderedPiece(decoding: record.value).changesOffset >= state.nextOffset
        } catch {
            // It is none of this stage's results, so it proves nothing.
            return false
        }
    }

    /// Has the tables say that everything in `ordered` from an offset on comes behind them.
    private func moveResults(to offset: Int64) async throws {
        let moved = StoredPosition(state: state, orderedOffset: offset)
        try await store.commit([
            StoreStep(partition: partition, expected: stored, position: moved, rows: [], outcomes: [])
        ])
        stored = moved
        logger.warning(
            "The topic ordered was made anew: it goes on behind what the tables hold, from which streams are made again",
            [.partition: .integer(partition), .offset: .integer(Int(offset))])
    }

    /// The tables cannot be read in a version that they are not prepared for here, as when another worker was ahead.
    private func checkSchema() throws {
        let ordinal = state.schemaOrdinal
        guard ordinal > 0, schemas()[ordinal] == nil else { return }
        throw OrderingError.paused(
            TopicPartition(.changes, partition), offset: state.nextOffset, reason: .unknownSchemaNumber(ordinal))
    }

    // MARK: Reading and publishing

    private func order(from reader: Log.Reader, to producer: Log.Producer) async throws {
        do {
            while !Task.isCancelled {
                await waitForRoom()
                let records = try await reader.next(maximumBytes: configuration.stepBytes)
                let (parts, unreadable) = decode(records)
                var rest = parts[...]
                while !rest.isEmpty { try await orderNext(&rest, producer) }
                if let unreadable { throw unreadable }
            }
        } catch  where Task.isCancelled {
            // Told to end, whatever failed on the way out: nothing of it was enqueued, so nothing is lost.
            return
        }
    }

    /// Decides and publishes as many messages as one step can take.
    private func orderNext(_ parts: inout ArraySlice<PartAtOffset>, _ producer: Log.Producer) async throws {
        let schemas = schemas()
        var taken = stretch(of: parts)
        let watch = Stopwatch()
        let known = try await readAhead(taken)
        let (step, pause) = decide(&taken, known, schemas: schemas)
        metrics.decideDuration.record(watch.nanoseconds)
        parts = parts[taken.startIndex...]
        if let step {
            try await publish(step, producer)
        } else if pause == nil {
            // Only the tables can tell what becomes of the next message, once they have all that came before it.
            await waitUntilWritten()
            try Task.checkCancellation()
        }
        if let pause { throw pause }
    }

    private func publish(_ decided: PendingStep, _ producer: Log.Producer) async throws {
        var step = decided
        metrics.note(step.counts)
        if !step.records.isEmpty { step.receipt = try await producer.enqueue(step.records) }
        step.records = []
        pending.append(step)
        addPending(step.size)
        waitingForWork.take()?.resume()
    }

    // MARK: Writing

    /// Writes steps as `ordered` acknowledges them, all that wait in one transaction; ends when ordering has ended and
    /// nothing is left.
    private func write() async throws {
        while let steps = await nextSteps() {
            guard let last = steps.last else { continue }
            var orderedOffset = stored?.orderedOffset ?? 0
            var rows = [RowKey: OrderedRow](minimumCapacity: steps.reduce(0) { $0 + $1.rows.count })
            var outcomes: [StoredOutcome] = []
            for step in steps {
                if let offset = try await step.receipt?.offsets().last { orderedOffset = offset + 1 }
                for row in step.rows { rows[row.key] = row }
                outcomes += step.outcomes
            }
            let position = StoredPosition(state: last.state, orderedOffset: orderedOffset)
            let merged = StoreStep(
                partition: partition, expected: stored, position: position, rows: Array(rows.values),
                outcomes: outcomes)
            writing = position
            ownPositions.append(position)
            try await commit(merged)
            writing = nil
            stored = position
            self.position.set(Int(position.state.nextOffset))
            for step in steps {
                overlay.remove(step)
                addPending(-step.size)
                metrics.writeDuration.record(step.watch.nanoseconds)
            }
            waitingForRoom.take()?.resume()
        }
    }

    /// Writes a step, again and again while what failed may pass.
    ///
    /// The results are published: a new worker would publish them once more with every attempt. Meanwhile the overlay fills
    /// to its bound, and the backlog stays in the log.
    private func commit(_ step: StoreStep) async throws {
        let retries = RetryPolicy(delays: configuration.retryDelay...configuration.retryDelay, clock: clock)
        try await retries.run { () throws(RecordStoreError) in
            try await store.commit([step])
        } retryIf: {
            $0.isRetriable && isOrdering
        } willRetry: { error, _ in
            metrics.retries.add()
            hasFailed(partition, error)
            logger.error(
                "The tables could not be written and are tried again", [.partition: .integer(partition)], error: error)
        }
    }

    /// Notes where the tables may stand while they are read.
    func beginReading() {
        ownPositions = [stored]
        if let writing { ownPositions.append(writing) }
    }

    /// Makes sure, after a read, that nobody else has moved the tables on before it.
    ///
    /// Whoever takes over while the one before still writes would read rows that know of messages yet to be decided, and
    /// would publish what comes of them before the position's compare-and-set could fence it (I4).
    func requireOwnTables() async throws {
        let found = try await store.position(of: partition)
        guard ownPositions.contains(found) else {
            throw RecordStoreError(.fenced, message: "another worker has moved partition \(partition) on")
        }
    }

    /// All steps that wait, `nil` when none will come.
    private func nextSteps() async -> [PendingStep]? {
        if pending.isEmpty, isOrdering {
            await withCheckedContinuation { waitingForWork = $0 }
        }
        guard !pending.isEmpty else { return isOrdering ? [] : nil }
        defer { pending = [] }
        return pending
    }

    private func addPending(_ bytes: Int) {
        pendingSize += bytes
        metrics.unwrittenBytes.add(bytes)
        room.add(bytes)
    }

    /// Suspends while there is no room and steps of this partition are not written: the backlog then stays in the log (I10).
    ///
    /// It waits for nobody else, so that a partition whose tables are away holds up no other: each may have one step, however
    /// full it is.
    private func waitForRoom() async {
        while pendingSize > 0, room.isFull, isOrdering { await nextWritten() }
    }

    /// Suspends until the tables hold all that was decided.
    private func waitUntilWritten() async {
        while pendingSize > 0, isOrdering { await nextWritten() }
    }

    private func nextWritten() async {
        await withCheckedContinuation { waitingForRoom = $0 }
    }

    /// Has the writing task end when nothing is left, and the reading task not wait for it.
    private func endOrdering() {
        isOrdering = false
        waitingForWork.take()?.resume()
        waitingForRoom.take()?.resume()
    }
}
