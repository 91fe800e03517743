import AsyncPrimitives
import ChangeLog
import FanOutLink
import PartitionSupervision
import RecordStore
import SyncModel
import Synchronization
import ThreadExecutor

/// The last stage: follows `ordered` and serves each owner's stream, outcomes and moves.
///
/// For each partition there is one SQLite file with the newest state of every row, in the order of timeStamps for each
/// device that made rows, and with the newest outcomes. It can be deleted: what is missing or damaged is rebuilt from the
/// tables and the tail of `ordered`, and until then the partition's owners get ``FanOutError/notReady(_:)``.
package final class FanOut<Log: ChangeLog, Store: RecordStore>: Sendable {
    private enum Phase {
        case idle
        case running
        case stopped
    }

    private struct State {
        var phase = Phase.idle
        var readers: ReaderPool?
    }

    let configuration: FanOutConfiguration
    let metrics: FanOutMetrics
    private let context: StageContext<Log>
    private let partitioning: Partitioning
    private let partitions: [Int: ServedPartition]
    private let store: Store
    private let observer: any FanOutObserver
    private let state = Mutex(State())
    private let ended = Promise<Void>()

    var log: Log { context.log }
    var clock: any Clock<Duration> { context.clock }

    /// Makes the fan-out of some partitions; ``run()`` starts it.
    ///
    /// - Parameters:
    ///   - context: its log holds `ordered`; a row of a schema version that is not known is waited for.
    ///   - partitions: those to serve, each from 0 to the history's count; others trap.
    ///   - store: the tables, from which streams are rebuilt.
    package init(
        _ context: StageContext<Log>, partitions: [Int], store: Store, configuration: FanOutConfiguration,
        observer: any FanOutObserver, metrics: FanOutMetrics = FanOutMetrics()
    ) {
        let history = context.history
        precondition(
            partitions.allSatisfy { (0..<history.partitions).contains($0) }, "a history's partitions count from 0")
        configuration.requirePositiveBounds()
        self.context = context
        self.configuration = configuration
        partitioning = Partitioning(count: history.partitions)
        self.partitions = Dictionary(
            Set(partitions).map { ($0, ServedPartition(number: $0, configuration)) },
            uniquingKeysWith: { first, _ in first })
        self.store = store
        self.observer = observer
        self.metrics = metrics
    }

    /// Serves until ``stop()`` is called or the task is cancelled.
    ///
    /// Called once. At the end files are closed, and callers that wait get ``FanOutError/closed``.
    ///
    /// - Throws: `ThreadStartError`, or why the folder could not be created; nothing was started then.
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

    /// Ends ``run()`` and returns when it has ended; a fan-out that was not run cannot be run afterwards.
    package func stop() async {
        let isRunning = state.withLock { state in
            if case .running = state.phase { return true }
            state.phase = .stopped
            return false
        }
        for partition in ordered { partition.stop() }
        if isRunning { await ended.value() }
    }

    /// Whether every partition serves pulls; streams that lag behind `ordered` do.
    package var isReady: Bool { partitions.values.allSatisfy(\.isReady) }

    // MARK: Partitions

    /// All of them, by number, so that the order of calls is not random.
    private var ordered: [ServedPartition] { partitions.values.sorted { $0.number < $1.number } }

    /// The partition that an owner lives in; `nil` where another fan-out serves it.
    func partition(of owner: SyncID) -> ServedPartition? { partitions[partitioning.partition(of: owner)] }

    /// The partition that an owner lives in, or an error where another fan-out serves it.
    func served(_ owner: SyncID) throws(FanOutError) -> ServedPartition {
        guard let partition = partition(of: owner) else {
            throw .notReady("partition \(partitioning.partition(of: owner)) is not served here")
        }
        return partition
    }

    /// Runs a closure over one state of a partition's file.
    ///
    /// - Parameter owner: the owner in whose turn it is read.
    func read<Result: Sendable>(
        _ partition: ServedPartition, of owner: SyncID, generation: Int,
        _ body: @escaping @Sendable (FileReader) throws -> Result
    ) async throws(FanOutError) -> Result {
        guard let readers = state.withLock({ $0.readers }) else { throw .notReady("the fan-out is not running") }
        return try await readers.read(partition, of: owner, generation: generation, body)
    }

    // MARK: Start and end

    private func worker(
        _ partition: ServedPartition, _ readers: ReaderPool
    ) throws(ThreadStartError) -> PartitionWorker<Log, Store> {
        let identity = StreamFile.Identity(
            path: partition.path, epoch: context.history.epoch, partition: partition.number)
        return PartitionWorker(
            context: context, partition: partition, identity: identity,
            writer: try FileWriter(
                partition, identity: identity, configuration, metrics: metrics),
            readers: readers, store: store,
            configuration: configuration, observer: observer, partitionMetrics: metrics.partition(partition.number))
    }

    private func close(_ workers: [PartitionWorker<Log, Store>], _ readers: ReaderPool) async {
        await readers.close()
        for worker in workers { await worker.close() }
    }

    private func end() {
        for partition in ordered { partition.stop() }
        state.withLock { $0.phase = .stopped }
        ended.fulfil(())
    }
}
