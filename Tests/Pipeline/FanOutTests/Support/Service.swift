import ChangeLog
import FanOut
import FanOutLink
import Foundation
import PartitionSupervision
import SyncModel

typealias TestFanOut = FanOut<MemoryLog, MemoryStore>

/// A fan-out over a world, in a folder of its own.
struct Service {
    let fanOut: TestFanOut
    let events: EventLog
    let folder: String

    /// The file of a partition.
    func file(_ partition: Int = 0) -> String { "\(folder)/fanout-\(partition).db" }
}

/// Runs a fan-out for the time of a closure, from ready to stopped.
///
/// - Parameters:
///   - folder: where its files lie; removed afterwards only by ``withFolder(_:)``.
///   - awaitReady: whether the closure begins once every partition is ready.
func withFanOut<Result>(
    _ world: World, in folder: String, clock: any Clock<Duration> = ContinuousClock(), awaitReady: Bool = true,
    partitions: [Int]? = nil, schemas: KnownSchemas? = nil, failures: PartitionFailures = PartitionFailures(),
    metrics: FanOutMetrics = FanOutMetrics(), configure: (inout FanOutConfiguration) -> Void = { _ in },
    _ body: (Service) async throws -> Result
) async throws -> Result {
    var configuration = FanOutConfiguration(directory: folder)
    configuration.retryDelay = .milliseconds(1)...(.milliseconds(1))
    configure(&configuration)
    let events = EventLog()
    let known = schemas ?? KnownSchemas(world.schemas)
    let served = partitions ?? Array(0..<world.partitions)
    let fanOut = TestFanOut(
        StageContext(log: world.log, history: world.history, schemas: known, failures: failures, clock: clock),
        partitions: served, store: world.store, configuration: configuration, observer: events, metrics: metrics)
    async let run: Void = fanOut.run()
    do {
        if awaitReady { await events.ready(served.count) }
        let result = try await body(Service(fanOut: fanOut, events: events, folder: folder))
        await fanOut.stop()
        try await run
        return result
    } catch {
        await fanOut.stop()
        try await run
        throw error
    }
}

/// Gives a closure a folder that is removed afterwards.
func withFolder<Result>(_ body: (String) async throws -> Result) async throws -> Result {
    let folder = FileManager.default.temporaryDirectory.path + "/fanout-tests-\(UUID().uuidString)"
    do {
        let result = try await body(folder)
        if FileManager.default.fileExists(atPath: folder) { try FileManager.default.removeItem(atPath: folder) }
        return result
    } catch {
        if FileManager.default.fileExists(atPath: folder) { try FileManager.default.removeItem(atPath: folder) }
        throw error
    }
}

/// Runs a fan-out in a folder of its own.
func withFanOut<Result>(
    _ world: World, clock: any Clock<Duration> = ContinuousClock(),
    configure: (inout FanOutConfiguration) -> Void = { _ in }, _ body: (Service) async throws -> Result
) async throws -> Result {
    try await withFolder { folder in
        try await withFanOut(world, in: folder, clock: clock, configure: configure, body)
    }
}

extension Service {
    /// Waits until everything in `ordered` was applied.
    func caughtUp(with world: World) async throws {
        for partition in 0..<world.partitions {
            try await events.applied(upTo: try await world.end(partition), of: partition)
        }
    }

    /// One page of one owner.
    func pull(
        _ knowledge: OwnerKnowledge = OwnerKnowledge(), of owner: SyncID = "abc", held: Set<TimeStamp> = [],
        limit: Int = 1000, bytes: Int = 1 << 30, maximumEntries: Int = .max, within: Duration = .seconds(60)
    ) async throws -> OwnerRows {
        let pull = OwnerPull(owner: owner, knowledge: knowledge, held: held, maximumEntries: maximumEntries)
        let request = PagePull(owners: [pull], limit: limit, maximumBytes: bytes)
        let pages = try await fanOut.pull(request, within: within)
        guard pages.count == 1, case .rows(let rows) = pages[0].content else { throw UnexpectedContent(pages: pages) }
        return rows
    }
}

/// An unexpected answer.
struct UnexpectedContent: Error {
    let pages: [OwnerPage]
}

extension OwnerRows {
    /// The rows as text.
    var text: String { String(decoding: json, as: UTF8.self) }

    /// The entries as a dictionary.
    var knowledge: [KnowledgeID: TimeStamp] {
        Dictionary(entries.map { ($0.device, $0.timeStamp) }, uniquingKeysWith: { first, _ in first })
    }
}
