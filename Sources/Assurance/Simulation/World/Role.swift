import Configuration
import DeviceModel
import FanOut
import FanOutLink
import Gateway
import Ingest
import Observability
import Ordering
import PartitionSupervision
import SyncModel
import ThreadExecutor

/// A process of the pipeline that is restarted when it ends, as by a supervisor.
final class Role: @unchecked Sendable {
    // Unchecked: used on the run's thread alone.
    enum Kind: String {
        case gateway
        case ingest
        case ordering
        case fanOut
    }

    private let kind: Kind
    private let number: Int
    private let world: World
    private var process: SimulatedProcess?
    private var processes: [SimulatedProcess] = []
    private var stage: FanOut<SimulatedLog, SimulatedStore>?
    private var handler: SimulatedGateway?
    /// The schema versions that its process knows.
    private var known = KnownSchemas()
    /// Tasks in which its processes learn schema versions.
    private var learning: [Task<Void, Never>] = []
    private var folder: String?
    private var isEnding = false

    init(_ kind: Kind, _ number: Int, _ world: World) {
        self.kind = kind
        self.number = number
        self.world = world
    }

    /// `nil` while its process does not run.
    var fanOut: FanOut<SimulatedLog, SimulatedStore>? { process.flatMap { $0.isAlive ? stage : nil } }

    /// `nil` while its process does not run.
    var gateway: (SimulatedProcess, SimulatedGateway)? {
        guard let process, process.isAlive, let handler else { return nil }
        return (process, handler)
    }

    var writesTables: Bool { kind == .ordering }

    func start() {
        guard !isEnding else { return }
        let process = SimulatedProcess("\(kind) \(number).\(processes.count + 1)")
        self.process = process
        processes.append(process)
        world.record("\(process.name) starts")
        let log = SimulatedLog(world: world, process: process)
        let store = SimulatedStore(world: world, process: process)
        let scenario = world.scenario
        let schemas = world.schemas
        known = KnownSchemas(schemas)
        let context = StageContext(log: log, history: scenario.history, schemas: known, clock: world.clock)
        switch kind {
        case .gateway:
            handler = SimulatedGateway(world, process, log, known)
            return
        case .ingest:
            let stage = IngestService(
                context,
                configuration: IngestConfiguration().with(\.stepBytes, max(scenario.stepBytes, 16 << 10))
                    .with(\.largeStepBytes, scenario.largeStepBytes),
                threads: 2)
            run(process) { try await stage.run() }
        case .ordering:
            let stage = OrderingService(
                context, store: store,
                configuration: OrderingConfiguration()
                    .with(\.stepBytes, scenario.stepBytes).with(\.stepRowBytes, scenario.stepRowBytes)
                    .with(\.appendBytes, scenario.stepBytes / 4).with(\.overlayBytes, scenario.overlayBytes)
                    .with(\.retryDelay, .milliseconds(200)))
            run(process) {
                try await store.prepare(schemas, epoch: scenario.history.epoch)
                try await stage.run()
            }
        case .fanOut:
            let folder = folder ?? world.folder.new()
            self.folder = folder
            let stage = FanOut(
                context, partitions: Array(0..<scenario.partitions), store: store,
                configuration: FanOutConfiguration(directory: folder).with(\.batchBytes, scenario.batchBytes)
                    .with(\.readerThreads, 1).with(\.recentResults, scenario.recentResults).with(\.rebuildRows, 3),
                observer: StreamEventRecorder(world: world, process: process))
            self.stage = stage
            world.started(stage)
            run(process) { try await stage.run() }
        }
    }

    private func run(_ process: SimulatedProcess, _ body: @escaping @Sendable () async throws -> Void) {
        process.start { [self] in
            var reason = "ends"
            do { try await body() } catch { reason = "ends: \(error)" }
            world.record("\(process.name) \(reason)")
            guard process === self.process, process.isAlive else { return }
            process.kill()
            startLater()
        }
    }

    func knows(_ count: Int) -> Bool { known.now.entries.count == count }

    /// Has the process read the versions that `control` has by then, after some time.
    func learnLater() {
        guard let process, process.isAlive else { return }
        _ = world.scheduler.schedule(at: world.scheduler.now + world.random.delay(upTo: .seconds(4))) { [self] in
            if process.isAlive { learning.append(Task { await learn(world.schemas, process) }) }
        }
    }

    /// Makes versions known to the process, and before that to the tables if it writes them.
    private func learn(_ schemas: SchemaHistory, _ process: SimulatedProcess) async {
        let known = known
        let store = SimulatedStore(world: world, process: process)
        while writesTables {
            do {
                try await store.prepare(schemas, epoch: world.scenario.history.epoch)
                break
            } catch {
                guard process.isAlive else { return }
                await world.pause(upTo: .seconds(1))
            }
        }
        guard process.isAlive else { return }
        world.record("\(process.name) knows \(schemas.entries.count) schema versions")
        known.learn(schemas)
    }

    private func startLater() {
        let downtime = world.random.delay(upTo: world.faults.areOn ? .seconds(5) : .milliseconds(50))
        _ = world.scheduler.schedule(at: world.scheduler.now + downtime) { [self] in
            if process?.isAlive != true { start() }
        }
    }

    // MARK: Faults

    /// Kills the process between two steps; another starts later.
    func crash() {
        guard let process, process.isAlive else { return }
        world.record("\(process.name) crashes")
        // Before it unwinds: what it writes to its files then must not count.
        folder = folder.map { world.folder.image(of: $0, partitions: world.scenario.partitions, world.random) }
        process.kill()
        startLater()
    }

    /// Stops the process in order; another starts later.
    func restart() {
        guard let process, process.isAlive, kind != .gateway else { return crash() }
        world.record("\(process.name) is stopped")
        process.stop()
    }

    /// Others take over its partitions while it continues for some time.
    func becomeStale() {
        guard let process, process.isAlive, kind == .ingest || kind == .ordering else { return crash() }
        world.record("\(process.name) becomes stale")
        process.isStale = true
        world.dropStale()
        let old = process
        _ = world.scheduler.schedule(at: world.scheduler.now + world.random.delay(upTo: .seconds(20))) { [self] in
            old.isStale = false
            world.dropStale()
        }
    }

    func recover() {
        process?.isStale = false
        world.dropStale()
        if process?.isAlive != true { startLater() }
    }

    /// Ends it permanently and waits until all its processes have unwound.
    func end() async {
        isEnding = true
        process?.stop()
        for process in processes {
            await process.ended()
            process.kill()
        }
        for task in learning { await task.value }
        await handler?.close()
    }
}

private struct StreamEventRecorder: FanOutObserver {
    let world: World
    let process: SimulatedProcess

    func passed(_ report: StreamReport) { if process.isAlive { world.passed(report) } }

    func record(_ event: FanOutEvent, partition: Int) {
        switch event {
        case .ready, .damaged, .reopening, .rebuilt: world.streamChanges += 1
        default: break
        }
        // Without the folder's name, which differs between runs.
        world.record(
            "\(process.name), stream \(partition): \(event.description.replacing(world.folder.path, with: ""))")
    }
}

/// A process from its start to its end.
///
/// The tasks of a killed process unwind, but its requests and answers no longer arrive: to the others it stopped between
/// two steps.
final class SimulatedProcess: @unchecked Sendable {
    // Unchecked: used on the run's thread alone.
    let name: String
    private(set) var isAlive = true
    /// Whether groups count it as gone although it continues.
    var isStale = false
    private var work: Task<Void, Never>?
    private var deaths: [() -> Void] = []

    init(_ name: String) { self.name = name }

    func start(_ work: @escaping @Sendable () async -> Void) { self.work = Task { await work() } }

    func onDeath(_ body: @escaping () -> Void) { deaths.append(body) }

    func kill() {
        guard isAlive else { return }
        isAlive = false
        work?.cancel()
        for death in deaths { death() }
        deaths = []
    }

    func stop() { work?.cancel() }

    /// Waits until its tasks have ended.
    func ended() async { await work?.value }
}
