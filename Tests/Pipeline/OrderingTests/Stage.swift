import ChangeLog
import MemoryChangeLog
import Observability
import Ordering
import PartitionSupervision
import RecordStore
import SQLiteRecordStore
import SyncModel
import Synchronization
import TestClocks

/// The log, the tables and the stage between them.
struct Stage<Log: ChangeLog> {
    let log: Log
    let store: WatchedStore
    let lines = Lines()
    let clock = RecordingClock()
    let failures = PartitionFailures()
    private let running: Task<Void, any Error>

    /// Starts the stage.
    init(
        _ log: Log, _ store: WatchedStore,
        configuration: OrderingConfiguration = OrderingConfiguration(),
        schemas: KnownSchemas = KnownSchemas(Fixture.schemas),
        metrics: OrderingMetrics = OrderingMetrics(), clock: (any Clock<Duration>)? = nil
    ) {
        self.log = log
        self.store = store
        let service = OrderingService(
            StageContext(
                log: log, history: Fixture.history, schemas: schemas, failures: failures, clock: clock ?? self.clock,
                logger: Logger(label: "ordering", output: LogOutput(format: .text, to: lines))),
            store: store, configuration: configuration, metrics: metrics)
        running = Task {
            defer { store.events.add(.ended) }
            try await service.run()
        }
    }

    /// Whether it has ended, after which nothing is ordered.
    var hasEnded: Bool { store.events.facts.contains { if case .ended = $0 { true } else { false } } }

    /// Tells it to end.
    func cancel() { running.cancel() }

    /// Waits for its end; what it threw is thrown.
    func ended() async throws { try await running.value }

    /// Ends it.
    func stop() async throws {
        cancel()
        try await ended()
    }
}

/// Opens the tables in a folder.
func openTables(_ folder: String) async throws -> SQLiteRecordStore {
    let store = try await SQLiteRecordStore.open(.init(path: folder + "/tables.db"))
    try await store.prepare(Fixture.schemas, epoch: Fixture.history.epoch)
    return store
}

/// Runs a closure with an empty log and empty tables.
func withLogAndTables(_ body: (MemoryChangeLog, SQLiteRecordStore) async throws -> Void) async throws {
    try await withTemporaryFolder { folder in
        let log = MemoryChangeLog(MemoryLogContents(partitionCount: 2))
        let tables = try await openTables(folder)
        let outcome: Result<Void, any Error>
        do {
            outcome = .success(try await body(log, tables))
        } catch {
            outcome = .failure(error)
        }
        await tables.close()
        await log.close()
        try outcome.get()
    }
}

/// The lines logged.
final class Lines: LogSink {
    let all = Signal<String>()

    func write(_ line: [UInt8]) { all.add(String(decoding: line, as: UTF8.self)) }

    /// Waits for a line that contains all of these.
    func until(_ parts: String...) async {
        await all.until { lines in lines.contains { line in parts.allSatisfy { line.contains($0) } } }
    }
}
