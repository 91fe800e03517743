import AsyncPrimitives
import ChangeLog
import Metrics
import Observability
import PartitionSupervision
import RecordStore
import SyncModel
import SyncWire

/// Orders one partition of `changes`: reads, decides, publishes to `ordered`, writes the tables, in this order (I5).
///
/// Two tasks share the actor. One reads, decides and enqueues the results, and continues at once: it decides the next records
/// with the ``Overlay``, the rows that are published and not yet written. The other waits until `ordered` has the results,
/// and writes rows and position in one transaction. What they share is ``PartitionOrdering``, which does no I/O: the actor
/// executes the effects that it returns.
actor PartitionWorker<Log: ChangeLog, Store: RecordStore> {
    private let partition: Int
    private let context: StageContext<Log>
    private let store: Store
    private let configuration: OrderingConfiguration
    private let budget: OverlayBudget
    private let largeParts: LargePartTurns
    private let metrics: OrderingMetrics
    private let hasProgressed: @Sendable () -> Void
    private let positionGauge: Gauge
    private var ordering: PartitionOrdering
    private var results = ResultPosition(stored: 0, end: 0, changesEnd: 0)
    /// Wakes the reading task when steps were written.
    private let stepsWritten = Wakeup()
    /// Wakes the writing task when there is a step.
    private let stepAdded = Wakeup()
    /// Until the first step is written: one part is published at a time, since its results are published again by the next attempt
    /// if the tables refuse them, and stay in `ordered`.
    private var isCautious: Bool
    /// The writing task's pause before it tries again.
    private var retryPause: Task<Void, any Error>?

    private var log: Log { context.log }

    /// The partition's name in the readiness of the process.
    static func name(_ partition: Int) -> String { "ordering of partition \(partition)" }

    init(
        partition: Int, context: StageContext<Log>, store: Store, configuration: OrderingConfiguration,
        budget: OverlayBudget, largeParts: LargePartTurns, metrics: OrderingMetrics, isCautious: Bool,
        hasProgressed: @escaping @Sendable () -> Void
    ) {
        self.partition = partition
        self.context = context
        self.store = store
        self.configuration = configuration
        self.budget = budget
        self.largeParts = largeParts
        self.metrics = metrics
        self.isCautious = isCautious
        self.hasProgressed = hasProgressed
        positionGauge = metrics.position(in: partition)
        ordering = PartitionOrdering(
            partition: partition, history: context.history, stored: nil, maximumRowBytes: configuration.stepRowBytes)
    }

    /// Orders until the task is cancelled; what is published by then is written before this returns, unless the tables fail.
    ///
    /// Called once.
    func run() async throws {
        let start = OrderingStart(partition: partition, context: context, store: store)
        let found = try await store.position(of: partition)
        let (stored, results) = try await start.checkedPosition(found, state: found?.state ?? PartitionState())
        self.results = results
        ordering = PartitionOrdering(
            partition: partition, history: context.history, stored: stored, maximumRowBytes: configuration.stepRowBytes)
        positionGauge.set(Int(ordering.state.nextOffset))
        let reader = try await start.reader(from: ordering.state)
        let producer: Log.Producer
        do {
            producer = try await log.producer()
        } catch {
            await reader.close()
            throw error
        }
        let (ordered, written) = await work(reader, producer)
        await reader.close()
        execute(ordering.releaseUnwritten())
        // A failure to write came first in the log's order, and may be the cause of the failure to order.
        try written.get()
        try ordered.get()
    }

    private typealias Ending = Result<Void, any Error>

    /// Runs both tasks until they have ended.
    private func work(_ reader: Log.Reader, _ producer: Log.Producer) async -> (ordered: Ending, written: Ending) {
        let orderingTask = Task {
            defer { endOrdering() }
            try await readAndPublish(from: reader, to: producer)
        }
        // Not cancelled with the worker: what was published is written, if the tables take it soon. It ends once ordering has.
        let writingTask = Task {
            do {
                try await write()
            } catch {
                orderingTask.cancel()
                endOrdering()
                throw error
            }
        }
        let ordered = await withTaskCancellationHandler {
            await orderingTask.result
        } onCancel: {
            orderingTask.cancel()
        }
        // The writing task waits for what is enqueued.
        await producer.close(within: StageContext<Log>.releaseLimit)
        return (ordered, await result(of: writingTask))
    }

    /// Waits for the writing task; once the worker is cancelled, at most ``StageContext/releaseLimit``: tables that do not answer must
    /// not delay the release of the partition.
    private func result(of writingTask: Task<Void, any Error>) async -> Ending {
        let hasEnded = Promise<Bool>()
        Task {
            _ = await writingTask.result
            hasEnded.fulfil(true)
        }
        if await hasEnded.value(cancelled: false) { return await writingTask.result }
        let limit = Task {
            try await Task.sleep(for: StageContext<Log>.releaseLimit)
            writingTask.cancel()
        }
        defer { limit.cancel() }
        return await writingTask.result
    }

    private func execute(_ effects: PartitionOrdering.Effects) {
        if effects.unwrittenBytes != 0 {
            metrics.unwrittenBytes.add(effects.unwrittenBytes)
            budget.add(effects.unwrittenBytes)
        }
        if effects.wakesReader { stepsWritten.signal() }
        if effects.wakesWriter { stepAdded.signal() }
    }

    private func endOrdering() {
        execute(ordering.endOrdering())
        retryPause?.cancel()
    }

    // MARK: Reading and publishing

    private func readAndPublish(from reader: Log.Reader, to producer: Log.Producer) async throws {
        do {
            while !Task.isCancelled {
                try await waitForBudget()
                let records = try await reader.next(maximumBytes: configuration.stepBytes)
                let skipped = context.schemas.content.skipped
                var rest = records[...]
                while !rest.isEmpty {
                    let run = rest.prefix { skipped[.changes, partition, $0.offset] == nil }
                    try await publish(run, producer)
                    rest = rest.dropFirst(run.count)
                    guard let record = rest.popFirst() else { break }
                    let step = ordering.pass(record)
                    execute(ordering.add(step))
                }
            }
        } catch  where Task.isCancelled {
            // Whatever failed after the cancellation: the partition's next worker repeats what was enqueued of the step.
            return
        }
    }

    /// Decides and publishes records up to the first that cannot be decoded.
    private func publish(_ records: ArraySlice<LogRecord>, _ producer: Log.Producer) async throws {
        let (parts, unreadable) = ordering.decode(records)
        var rest = parts[...]
        while !rest.isEmpty { try await publishNext(&rest, producer) }
        if let unreadable { throw unreadable }
    }

    /// Decides and publishes as many parts as one step can take.
    private func publishNext(_ parts: inout ArraySlice<PartAtOffset>, _ producer: Log.Producer) async throws {
        try await waitForBudget()
        let schemas = context.schemas.now
        var taken = isCautious ? parts.prefix(1) : ordering.prefix(of: parts)
        let watch = Stopwatch()
        let (known, turn) = try await readAhead(&taken)
        let (decided, obstacle) = ordering.decide(&taken, known, schemas: schemas)
        metrics.decideDuration.record(watch.nanoseconds)
        parts = parts[taken.startIndex...]
        if var step = decided {
            step.turn = turn
            metrics.record(step.counts)
            try await enqueue(&step, producer)
            execute(ordering.add(step))
            if isCautious { try await waitUntilWritten() }
        } else if obstacle == nil {
            // Only the tables show the next part's progress, once they hold all that came before it.
            try await waitUntilWritten()
        }
        if let obstacle { throw obstacle }
    }

    /// Enqueues the records of a step; many of them in several appends, between which the log takes those of other partitions.
    private func enqueue(_ step: inout PendingStep, _ producer: Log.Producer) async throws {
        let maximum = log.maximumRecordSize
        // Before the first append, so that attempts to publish the step do not each append its beginning.
        if let record = step.records.first(where: { $0.key.count + $0.value.count > maximum }) {
            throw ChangeLogError.tooLarge(record, maximum: maximum)
        }
        var records = step.records[...]
        step.records = []
        while !records.isEmpty {
            var size = 0
            let next = records.prefix { record in
                defer { size += record.value.count }
                return size < configuration.appendBytes
            }
            records = records[next.endIndex...]
            do throws(ChangeLogError) {
                step.receipts.append(try await StageContext<Log>.enqueue(Array(next), to: producer))
            } catch {
                // An append that failed before has the cause.
                for receipt in step.receipts { _ = try await receipt.offsets() }
                throw error
            }
        }
    }

    private func waitForBudget() async throws {
        while ordering.mustWait(isBudgetFull: budget.isFull(for: ordering.unwrittenBytes)), !Task.isCancelled {
            await stepsWritten.waitUnlessCancelled()
        }
        try Task.checkCancellation()
    }

    /// Ends also, by cancellation, when the writing task has failed: nothing is written any more.
    private func waitUntilWritten() async throws {
        while ordering.mustWaitUntilWritten, !Task.isCancelled { await stepsWritten.waitUnlessCancelled() }
        try Task.checkCancellation()
    }

    /// Reads in bulk what the parts touch, and removes those at the end whose rows are more than one lookup returns.
    ///
    /// One lookup has everything, unless rows are larger than those read before. If it has not even the rows of the first part,
    /// that part is taken alone, and its rows are looked up, once it has its turn, until it has those that it may touch
    /// (``TouchedRows``).
    private func readAhead(
        _ parts: inout ArraySlice<PartAtOffset>
    ) async throws -> (known: ReadAhead, turn: LargePartTurns.Turn?) {
        let lookups = ordering.beginReadAhead(parts)
        var known = lookups.known
        if lookups.isEmpty { return (known, nil) }
        try await lookUp(
            lookups.rows, Array(lookups.progress), Array(lookups.applied), Array(lookups.owners), &known)
        let read = ordering.readPrefix(of: parts, known)
        guard read.isEmpty, let first = parts.first else {
            parts = read
            return (known, nil)
        }
        parts = parts.prefix(1)
        var turn: LargePartTurns.Turn?
        while true {
            let next = ordering.nextRows(of: first.part, known)
            if next.isEmpty { return (known, turn) }
            if turn == nil { turn = try await largeParts.take(context.clock) }
            try Task.checkCancellation()
            try await lookUp(next, [], [], [], &known)
        }
    }

    /// Looks up rows, progress, applied changes and usage: as many of the rows as a step may have.
    private func lookUp(
        _ rows: [RowKey], _ requests: [ProgressRequest], _ changes: [AppliedChangeKey], _ owners: [SyncID],
        _ known: inout ReadAhead
    ) async throws {
        let found = try await store.lookup(
            rows: rows, progress: requests, applied: changes, usage: owners, in: partition,
            schemaOrdinal: ordering.state.schemaOrdinal,
            maximumBytes: configuration.stepRowBytes)
        if !known.unread.isEmpty { known.unread.subtract(rows) }
        known.unread.formUnion(found.unread)
        for row in found.rows { known.rows[row.key] = row }
        for (request, progress) in zip(requests, found.progress) { known.progress[request] = progress }
        for (key, change) in zip(changes, found.applied) { known.applied[key] = change }
        for (owner, usage) in zip(owners, found.usage) { known.usage[owner] = usage }
        ordering.recordSize(of: found.rows, lookedUp: rows.count - found.unread.count)
        // After a rebalance the partition's previous worker may still write: the rows read here may then have results of parts
        // that this worker has yet to decide, and what follows from them must not be published (I4). The position shows it;
        // the compare-and-set of the write would come too late. Every lookup since the step began is of a position of this
        // worker, so all of them fit together: no step wrote the rows that the overlay did not have then.
        guard ordering.isOwn(found.position) else {
            throw RecordStoreError(.fenced, message: "another worker has written results of partition \(partition)")
        }
    }

    // MARK: Writing

    /// Writes steps as `ordered` acknowledges them, all that wait in one transaction; ends when ordering has ended and
    /// no step is left.
    private func write() async throws {
        while true {
            switch ordering.takeSteps() {
            case .end: return
            case .wait: await stepAdded.wait()
            case .write(let steps):
                for step in steps {
                    for receipt in step.receipts { try await takeOffsets(of: receipt) }
                }
                let next = steps.last?.state.nextOffset ?? ordering.state.nextOffset
                let transaction = ordering.beginWrite(steps, orderedOffset: results.position(before: next))
                try await commit(transaction, of: steps)
                positionGauge.set(Int(transaction.position.state.nextOffset))
                execute(ordering.endWrite(steps, at: transaction.position))
                for step in steps { step.turn?.giveBack() }
                isCautious = false
                hasProgressed()
                for step in steps { metrics.writeDuration.record(step.watch.nanoseconds) }
            }
        }
    }

    private func takeOffsets(of receipt: AppendReceipt) async throws {
        guard results.append(try await receipt.offsets()) else { return }
        let end = try await log.range(of: TopicPartition(.changes, partition)).end
        results.hold(until: end)
        context.logger.notice(
            "Another worker has appended results of this partition meanwhile, as after a rebalance",
            [.partition: .integer(partition), .offset: .integer(Int(end))])
    }

    /// Writes the rows and the position of some steps, again while the failure may pass and ordering continues.
    ///
    /// Retried here, since a new worker would publish the results again with every attempt. Meanwhile the overlay fills to its
    /// limit, and the backlog stays in the log. Once ordering has ended, tables that fail are left to the partition's next worker,
    /// so that they do not delay the release of the partition.
    private func commit(_ transaction: StoreStep, of steps: [PendingStep]) async throws {
        var backoff = Backoff(configuration.retries(context.clock))
        while true {
            do throws(RecordStoreError) {
                try await store.commit([transaction])
                if backoff.attempts > 0 { context.failures.forget(Self.name(partition)) }
                return
            } catch {
                guard error.isRetriable, ordering.isOrdering else { throw error }
                // Other partitions do not wait for these tables.
                for step in steps { step.turn?.giveBack() }
                metrics.supervision(of: partition).retries.add()
                let delay = backoff.next()
                context.failures.record(Self.name(partition), error, pause: delay)
                context.logger.error(
                    "Writing the tables failed; trying again", [.partition: .integer(partition)], error: error)
                let pause = Task { [clock = context.clock] in try await clock.sleep(for: delay)
                }
                retryPause = pause
                // Cancelled when ordering ends.
                _ = await pause.result
                retryPause = nil
                guard ordering.isOrdering else { throw error }
            }
        }
    }
}
