import Configuration
import FanOut
import Gateway
import Ingest
import Observability
import Ordering
import SyncModel
import ThreadExecutor

/// A place for a worker process: one life of it after the other, as whoever supervises it would have it.
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
    private var lives: [SimulatedProcess] = []
    private var stage: FanOut<SimulatedLog, SimulatedStore>?
    private var handler: SimulatedGateway?
    private var folder: String?
    private var isEnding = false

    init(_ kind: Kind, _ number: Int, _ world: World) {
        self.kind = kind
        self.number = number
        self.world = world
    }

    /// The fan-out, while its process runs.
    var fanOut: FanOut<SimulatedLog, SimulatedStore>? { process.flatMap { $0.isAlive ? stage : nil } }

    /// The gateway, while its process runs.
    var gateway: (SimulatedProcess, SimulatedGateway)? {
        guard let process, process.isAlive, let handler else { return nil }
        return (process, handler)
    }

    /// Whether it is its duty to bring the tables on.
    var writesTables: Bool { kind == .ordering }

    /// Begins a life.
    func start() {
        guard !isEnding else { return }
        let process = SimulatedProcess("\(kind) \(number).\(lives.count + 1)")
        self.process = process
        lives.append(process)
        world.note("\(process.name) starts")
        let log = SimulatedLog(world: world, process: process)
        let store = SimulatedStore(world: world, process: process)
        let (scenario, schemas) = (world.scenario, world.scenario.schemas)
        switch kind {
        case .gateway:
            handler = SimulatedGateway(world, process, log)
            return
        case .ingest:
            let stage = IngestService(
                log: log, history: scenario.history, limits: SyncLimits(),
                configuration: IngestConfiguration().with(\.stepBytes, max(scenario.stepBytes, 16 << 10)),
                clock: world.clock,
                schemas: { schemas }, report: { _ in })
            run(process) { try await stage.run() }
        case .ordering:
            let stage = OrderingService(
                log: log, store: store, history: scenario.history, schemas: { schemas },
                configuration: OrderingConfiguration().with(\.stepBytes, scenario.stepBytes)
                    .with(\.overlayBytes, scenario.overlayBytes).with(\.retryDelay, .milliseconds(200)),
                clock: world.clock, logger: .disabled)
            run(process) {
                try await store.prepare(schemas, epoch: scenario.history.epoch)
                try await stage.run()
            }
        case .fanOut:
            let folder = folder ?? world.folder.new()
            self.folder = folder
            let stage = FanOut(
                configuration: FanOutConfiguration(directory: folder).with(\.batchBytes, scenario.batchBytes)
                    .with(\.readerThreads, 1).with(\.recentResults, scenario.recentResults).with(\.rebuildRows, 3),
                history: scenario.history, partitions: Array(0..<scenario.partitions), log: log, store: store,
                schemas: { schemas }, clock: world.clock, observer: StreamWatch(world: world, process: process))
            self.stage = stage
            run(process) { try await stage.run() }
        }
    }

    private func run(_ process: SimulatedProcess, _ body: @escaping @Sendable () async throws -> Void) {
        process.start { [self] in
            var reason = "ends"
            do { try await body() } catch { reason = "ends: \(error)" }
            world.note("\(process.name) \(reason)")
            guard process === self.process, process.isAlive else { return }
            process.kill()
            startLater()
        }
    }

    private func startLater() {
        let downtime = world.dice.delay(upTo: world.faults.areOn ? .seconds(5) : .milliseconds(50))
        _ = world.scheduler.schedule(at: world.scheduler.now + downtime) { [self] in
            if process?.isAlive != true { start() }
        }
    }

    // MARK: What happens to it

    /// Stops it between two steps; another one starts after a while.
    func crash() {
        guard let process, process.isAlive else { return }
        world.note("\(process.name) crashes")
        // Before it unwinds: what it does to its files on the way reaches nobody.
        folder = folder.map { world.folder.image(of: $0, partitions: world.scenario.partitions, world.dice) }
        process.kill()
        startLater()
    }

    /// Asks it to end in order, and starts another one.
    func restart() {
        guard let process, process.isAlive, kind != .gateway else { return crash() }
        world.note("\(process.name) is stopped")
        process.stop()
    }

    /// Lets the others take over what it works on, while it goes on for a while.
    func fallSilent() {
        guard let process, process.isAlive, kind == .ingest || kind == .ordering else { return crash() }
        world.note("\(process.name) falls silent")
        process.isStale = true
        world.dropSilent()
        let old = process
        _ = world.scheduler.schedule(at: world.scheduler.now + world.dice.delay(upTo: .seconds(20))) { [self] in
            old.isStale = false
            world.dropSilent()
        }
    }

    /// Ends what is wrong with it.
    func recover() {
        process?.isStale = false
        world.dropSilent()
        if process?.isAlive != true { startLater() }
    }

    /// Ends it for good, and waits for all its lives to unwind.
    func end() async {
        isEnding = true
        process?.stop()
        for life in lives {
            await life.ended()
            life.kill()
        }
        await handler?.close()
    }
}

/// Notes what happens to streams.
private struct StreamWatch: FanOutObserver {
    let world: World
    let process: SimulatedProcess

    func record(_ event: FanOutEvent, partition: Int) {
        // The folder's name is another one each time.
        world.note("\(process.name), stream \(partition): \(event.description.replacing(world.folder.path, with: ""))")
    }
}
