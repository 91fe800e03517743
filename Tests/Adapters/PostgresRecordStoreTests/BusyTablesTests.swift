import AsyncPrimitives
import Dispatch
import Postgres
import PostgresRecordStore
import PostgresServer
import RecordStore
import SyncModel
import Synchronization
import Testing

/// Migrations of tables that other sessions use.
@Suite(.timeLimit(.minutes(5)), .enabled(if: PostgresServer.programs != nil, "\(PostgresServer.skipReason)"))
struct BusyTablesTests {
    /// A migration that begins in a closure and ends after it.
    private final class Migrating: Sendable {
        let published = Atomic(0)
        private let task = Mutex<Task<[MigrationPlan]?, any Error>?>(nil)

        func start(_ store: PostgresRecordStore) {
            task.withLock {
                $0 = Task {
                    try await store.migrate(Samples.second, epoch: PostgresRecordStore.epoch) {
                        self.published.add(1, ordering: .relaxed)
                        return true
                    }
                }
            }
        }

        func plans() async throws -> [MigrationPlan]? { try await task.withLock { $0 }?.value }
    }

    /// Waits until a session of the database holds the lock that makes readers give way.
    private func untilAnnounced(_ place: PostgresStoreHarness) async throws {
        let announced =
            "SELECT pid::text FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND objid = 4294967294"
        while try await place.query(
            announced + " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        ).isEmpty {}
    }

    private func columns(_ place: PostgresStoreHarness) async throws -> Int {
        try await place.query(
            "SELECT 1::text FROM information_schema.columns WHERE table_schema = '\(place.schema)' AND table_name = 'person'"
        ).count
    }

    /// Whoever reads a version can use its tables.
    @Test func aVersionIsPublishedOnlyWhenTheTablesHaveIt() async throws {
        let place = try await PostgresStoreHarness.makeDatabase()
        try await place.withStore { store in
            try await store.prepare(Samples.first)
            let before = try await columns(place)
            let migration = Migrating()
            try await place.execute("BEGIN; SELECT FROM person") {
                migration.start(store)
                try await untilAnnounced(place)
                // Others write meanwhile: no lock is held while the migration waits.
                for number in 1...Int64(5) {
                    try await store.commit([Samples.step(number, [Samples.row("r\(number)")])])
                }
                #expect(migration.published.load(ordering: .relaxed) == 0)
            }
            #expect(try await migration.plans()?.count == 1)
            #expect(migration.published.load(ordering: .relaxed) == 1)
            #expect(try await columns(place) > before)
            #expect(try await store.migrationPlans(Samples.second).map(\.statements) == [[]])
        }
    }

    @Test(arguments: [0, 1]) func tablesOfAnyDatabaseAreAwaited(busy: Int) async throws {
        let places = [try await PostgresStoreHarness.makeDatabase(), try await PostgresStoreHarness.makeDatabase()]
        try await places[0].withStore { configuration in
            let other = try places[1].configuration.shards[0]
            configuration.shards.append(other)
        } _: { store in
            try await store.prepare(Samples.first)
            let migration = Migrating()
            let held = PostgresStoreHarness(
                server: places[busy].server, schema: places[0].schema, database: places[busy].database)
            try await held.execute("BEGIN; SELECT FROM person") {
                migration.start(store)
                try await untilAnnounced(held)
                #expect(migration.published.load(ordering: .relaxed) == 0)
                // Another process can start meanwhile.
                try await store.prepare(Samples.first)
            }
            #expect(try await migration.plans()?.map(\.statements.isEmpty) == [false, false])
            #expect(try await store.migrationPlans(Samples.second).map(\.statements) == [[], []])
        }
    }

    @Test(arguments: [false, true]) func aVersionThatIsNotPublishedChangesNoTable(fails: Bool) async throws {
        struct Refusal: Error {}
        let place = try await PostgresStoreHarness.makeDatabase()
        try await place.withStore { store in
            try await store.prepare(Samples.first)
            let before = try await columns(place)
            let result = await Result<[MigrationPlan]?, any Error>.capturing {
                try await store.migrate(Samples.second, epoch: PostgresRecordStore.epoch) {
                    if fails { throw Refusal() }
                    return false
                }
            }
            if fails {
                #expect(throws: RecordStoreError.self) { try result.get() }
            } else {
                #expect(try result.get() == nil)
            }
            #expect(try await columns(place) == before)
            // Nothing is held any more.
            try await store.commit([Samples.step(1, [Samples.row("a")])])
            try await store.prepare(Samples.second)
        }
    }

    /// A rebuild or a verification of hours must not keep a schema version from its tables.
    @Test(arguments: [false, true]) func aLongReadGivesWayToAMigration(isExported: Bool) async throws {
        let place = try await PostgresStoreHarness.makeDatabase()
        try await place.withStore { store in
            try await store.prepare(Samples.first)
            try await store.commit([Samples.step(1, [Samples.row("a")])])
            let (begun, begin) = AsyncStream.makeStream(of: Void.self)
            let isAnnounced = DispatchSemaphore(value: 0)
            @Sendable func read(_ reader: some RecordReader) async throws {
                try await reader.snapshot(of: 0, schemaOrdinal: 1) { chunk in
                    // Only then its transaction has the tables.
                    guard case .rows = chunk else { return }
                    begin.yield()
                    isAnnounced.wait()
                    isAnnounced.signal()
                }
            }
            let reading = Task {
                defer { begin.finish() }
                if isExported {
                    try await store.withSnapshot(of: 0) { try await read($0) }
                } else {
                    try await read(store)
                }
            }
            for await _ in begun { break }
            // The reader holds its tables by an open transaction.
            async let migrated = store.migrate(Samples.second, epoch: PostgresRecordStore.epoch)
            try await untilAnnounced(place)
            isAnnounced.signal()
            let error = await #expect(throws: RecordStoreError.self) { try await reading.value }
            #expect(error?.code == .givesWay)
            #expect(error?.isRetriable == true)
            #expect(try await migrated.count == 1)
            try await read(store)
        }
    }

    @Test func tablesThatStayInUseAreReportedWithTheirUsers() async throws {
        let place = try await PostgresStoreHarness.makeDatabase()
        try await place.withStore {
            $0.migrationWait = .seconds(1)
        } _: { store in
            try await store.prepare(Samples.first)
            try await place.execute("SET application_name = 'nightly dump'; BEGIN; SELECT FROM person") {
                let error = await #expect(throws: RecordStoreError.self) { try await store.migrate(Samples.second) }
                #expect(
                    error?.message.contains("the tables are in use, by nightly dump (pid ") == true,
                    "\(String(describing: error))")
                #expect(error?.isRetriable == true)
            }
            try await store.migrate(Samples.second)
        }
    }
}
