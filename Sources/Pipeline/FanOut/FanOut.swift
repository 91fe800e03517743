import AsyncPrimitives
import ChangeLog
import FanOutLink
import RecordStore
import SyncModel
import Synchronization
import ThreadExecutor

/// The last stage: follows `ordered` and serves each owner's stream, outcomes and moves.
///
/// For each partition there is one SQLite file with the newest state of every row, in the order of timeStamps for each
/// device that made rows, and with the newest outcomes. It can be thrown away: what is missing or damaged is made again
/// from the tables and the tail of `ordered`, and until then the partition's owners get ``FanOutError/notReady(_:)``.
package final class FanOut<Log: ChangeLog, Store: RecordStore>: Sendable {
    private enum Phase {
        case idle
        case running
        case stopped
    }

    private struct State {
        var phase = Phase.idle
        var readers: ReaderPool?
        /// Those who wait in ``stop()``; as many as callers.
        var stoppers: [Promise<Void>] = []
    }

    let configuration: FanOutConfiguration
    let log: Log
    let clock: any Clock<Duration>
    let metrics: FanOutMetrics
    private let epoch: String
    private let partitioning: Partitioning
    private let partitions: [Int: ServedPartition]
    private let store: Store
    private let schemas: @Sendable () -> SchemaHistory
    private let schemaWait: SchemaWait
    private let observer: any FanOutObserver
    private let state = Mutex(State())

    /// Makes the fan-out of some partitions of a history; ``run()`` sets it to work.
    ///
    /// - Parameters:
    ///   - configuration: where the files lie, and limits.
    ///   - history: the history; files of another one are made anew.
    ///   - partitions: those to serve, each from 0 to the history's count; others trap.
    ///   - log: where `ordered` is.
    ///   - store: the tables, from which streams are rebuilt.
    ///   - schemas: the versions known at the time of the call; a row of a version that is not among them is waited for.
    ///   - schemaWait: waits for versions to become known; those that `schemas` knows then.
    ///   - clock: measures waits and pauses.
    ///   - observer: is told what happens.
    ///   - metrics: what is counted.
    package init(
        configuration: FanOutConfiguration, history: History, partitions: [Int], log: Log, store: Store,
        schemas: @escaping @Sendable () -> SchemaHistory,
        schemaWait: @escaping SchemaWait = SchemaHistory.noFurtherVersions,
        clock: any Clock<Duration> = ContinuousClock(),
        observer: any FanOutObserver, metrics: FanOutMetrics = FanOutMetrics()
    ) {
        precondition(
            partitions.allSatisfy { (0..<history.partitions).contains($0) }, "a history's partitions count from 0")
        configuration.requirePositiveBounds()
        self.configuration = configuration
        epoch = history.epoch
        partitioning = Partitioning(count: history.partitions)
        self.partitions = Dictionary(
            Set(partitions).map { ($0, ServedPartition(number: $0, configuration)) },
            uniquingKeysWith: { first, _ in first })
        self.log = log
        self.store = store
        self.schemas = schemas
        self.schemaWait = schemaWait
        self.clock = clock
        self.observer = observer
        self.metrics = metrics
    }

    /// Serves until ``stop()`` is called or the task is cancelled.
    ///
    /// To be called once. It ends in order: files are closed, those who wait get ``FanOutError/closed``.
    ///
    /// - Throws: `ThreadStartError`, or why the folder could not be made; nothing was begun then.
    package func run() async throws {
        let isFirst = state.withLock { state in
            guard case .idle = state.phase else { return false }
            state.phase = .running
            return true
        }
        guard isFirst else { return }
        defer { end() }
        try FileOnDisk.makeFolder(configuration.directory)
        let readers = try await ReaderPool(configuration)
        var workers: [PartitionWorker<Log, Store>] = []
        do {
            for partition in ordered { workers.append(try worker(partition, readers)) }
        } catch {
            await close(workers, readers)
            throw error
        }
        state.withLock { $0.readers = readers }
        await withTaskGroup(of: Void.self) { group in
            for worker in workers { group.addTask { await worker.run() } }
        }
        await close(workers, readers)
    }

    /// Ends ``run()`` and returns when it has ended; a fan-out that was not run never will be.
    package func stop() async {
        let stopper = Promise<Void>()
        let isRunning = state.withLock { state in
            guard case .running = state.phase else {
                state.phase = .stopped
                return false
            }
            state.stoppers.append(stopper)
            return true
        }
        for partition in ordered { partition.stop() }
        if isRunning { await stopper.value() }
    }

    /// Whether every partition serves pulls; streams that lag behind `ordered` do.
    package var isReady: Bool { partitions.values.allSatisfy(\.isReady) }

    // MARK: Partitions

    /// All of them, by number: what is done to one after the other is done in no order of chance.
    private var ordered: [ServedPartition] { partitions.values.sorted { $0.number < $1.number } }

    /// The partition that an owner lives in; `nil` where another fan-out serves it.
    func partition(of owner: SyncID) -> ServedPartition? { partitions[partitioning.partition(of: owner)] }

    /// The same, for callers that cannot go on without.
    func served(_ owner: SyncID) throws(FanOutError) -> ServedPartition {
        guard let partition = partition(of: owner) else {
            throw .notReady("partition \(partitioning.partition(of: owner)) is not served here")
        }
        return partition
    }

    /// Runs a closure over one state of a partition's file.
    func read<Result: Sendable>(
        _ partition: ServedPartition, generation: Int, _ body: @escaping @Sendable (FileReader) throws -> Result
    ) async throws(FanOutError) -> Result {
        guard let readers = state.withLock({ $0.readers }) else { throw .notReady("the fan-out is not running") }
        return try await readers.read(partition, generation: generation, body)
    }

    // MARK: Life

    private func worker(
        _ partition: ServedPartition, _ readers: ReaderPool
    ) throws(ThreadStartError) -> PartitionWorker<Log, Store> {
        let identity = StreamFile.Identity(path: partition.path, epoch: epoch, partition: partition.number)
        return PartitionWorker(
            partition: partition, identity: identity,
            writer: try FileWriter(partition, identity: identity, metrics: metrics),
            readers: readers, log: log, store: store, schemas: schemas, schemaWait: schemaWait,
            configuration: configuration,
            clock: clock, observer: observer, partitionMetrics: metrics.partition(partition.number))
    }

    private func close(_ workers: [PartitionWorker<Log, Store>], _ readers: ReaderPool) async {
        await readers.close()
        for worker in workers { await worker.close() }
    }

    private func end() {
        for partition in ordered { partition.stop() }
        let stoppers = state.withLock { state in
            state.phase = .stopped
            defer { state.stoppers = [] }
            return state.stoppers
        }
        for stopper in stoppers { stopper.fulfil(()) }
    }
}
