import Postgres
import PostgresRecordStore
import PostgresServer
import RecordStore
import SyncModel
import Synchronization
import Testing

/// Snapshots of tables during writes.
@Suite(.timeLimit(.minutes(5)), .enabled(if: PostgresServer.programs != nil, "\(PostgresServer.skipReason)"))
struct ExportedSnapshotTests {
    /// What a reader sees of partition 0: its position, the versions of two rows by lookup and by scan, and a device's progress.
    private struct Sight: Sendable, Equatable {
        var position: StoredPosition?
        var versions: [Int64] = []
        var scanned: [Int64] = []
        var highestBatch: Int64 = 0

        init(_ reader: some RecordReader) async throws {
            position = try await reader.position(of: 0)
            // Of two tables.
            let rows = try await reader.rows(Self.keys, in: 0, schemaOrdinal: 2)
            versions = rows.map(\.version).sorted()
            let seen = Mutex<[Int64]>([])
            try await reader.snapshot(of: 0, schemaOrdinal: 2) { piece in
                guard case .rows(let rows) = piece else { return }
                seen.withLock { $0 += rows.map(\.version) }
            }
            scanned = seen.withLock { $0.sorted() }
            highestBatch = try await reader.progress([ProgressRequest(key: Samples.device, batch: .max)], in: 0)[0]
                .highestBatch
        }

        private static let keys = [row(1, 0), row(1, 1)].map(\.key)

        static func row(_ version: Int64, _ table: Int) -> OrderedRow {
            let person = [#""name""#, "1", "null", "null", "null", "null", "5", "null"]
            return Samples.row("r\(table)", table == 0 ? person : ["null"], version: version, table: table)
        }
    }

    private func write(_ number: Int64, to store: PostgresRecordStore) async throws {
        let rows = [Sight.row(number, 0), Sight.row(number, 1)]
        try await store.commit([Samples.step(number, rows, [Samples.outcome(number)])])
    }

    @Test func aSnapshotDoesNotChangeDuringWrites() async throws {
        let place = try await PostgresStoreHarness.make()
        try await place.withStore { store in
            try await store.prepare(Samples.second)
            try await write(1, to: store)
            let before = try await Sight(store)
            #expect(before.versions == [1, 1])
            #expect(before.scanned == [1, 1])
            #expect(before.highestBatch == 1)
            try await store.withSnapshot(of: 0) { moment in
                try await write(2, to: store)
                #expect(try await Sight(moment) == before)
                try await write(3, to: store)
                // A look in the midst of another, as a comparison has it.
                try await moment.snapshot(of: 0, schemaOrdinal: 2) { _ in }
                #expect(try await Sight(moment) == before)
            }
            let after = try await Sight(store)
            #expect(after.position == Samples.position(3))
            #expect(after.versions == [3, 3])
        }
    }

    /// What ordering looks up is of the position that comes with it, whatever another worker writes meanwhile (I4).
    @Test func aLookupIsOfOneMoment() async throws {
        let place = try await PostgresStoreHarness.makeDatabase()
        // It waits for the lock however long the machine takes to find that it does.
        try await place.withStore {
            $0.stalledAfter = .seconds(300)
        } _: { store in
            try await store.prepare(Samples.second)
            try await write(1, to: store)
            @Sendable func lookUp() async throws -> StepLookup {
                let request = ProgressRequest(key: Samples.device, batch: 1)
                return try await store.lookup(
                    rows: [Sight.row(1, 0).key], progress: [request], applied: [], usage: [], in: 0, schemaOrdinal: 2,
                    maximumBytes: 1 << 20)
            }
            let found = Mutex<Task<StepLookup, any Error>?>(nil)
            // Its session has the statements prepared.
            #expect(try await lookUp().position == Samples.position(1))
            // The devices are read after the position and before the rows.
            try await place.execute("BEGIN; LOCK TABLE weir_devices IN ACCESS EXCLUSIVE MODE") {
                found.withLock { $0 = Task { try await lookUp() } }
                let waiting = "SELECT 1::text FROM pg_locks WHERE NOT granted AND relation = 'weir_devices'::regclass"
                while try await place.query(waiting).isEmpty {}
                try await place.execute(
                    "BEGIN; UPDATE person SET version = 2; UPDATE weir_partitions SET next_offset = 2; COMMIT")
            }
            let lookup = try #require(try await found.withLock { $0 }?.value)
            #expect(lookup.position == Samples.position(1))
            #expect(lookup.rows.map(\.version) == [1])
            #expect(lookup.progress.map(\.highestBatch) == [1])
        }
    }

    @Test func anErrorOfTheBodyEndsTheSnapshot() async throws {
        struct Cause: Error {}
        let place = try await PostgresStoreHarness.makeDatabase()
        try await place.withStore { store in
            try await store.prepare(Samples.first)
            await #expect(throws: Cause.self) {
                try await store.withSnapshot(of: 0) { _ in throw Cause() }
            }
            // Nothing is held any more.
            let open = try await place.query(
                "SELECT query FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'"
            )
            #expect(open.isEmpty)
        }
    }

    @Test func failsWithoutAServer() async throws {
        let place = try await PostgresStoreHarness.make()
        let proxy = try CuttingProxy(to: place.server)
        try await place.withStore { configuration in
            configuration.shards[0]["host"] = proxy.folder
        } _: { store in
            try await store.prepare(Samples.first)
            try proxy.end()
            await #expect(throws: RecordStoreError.self) {
                try await store.withSnapshot(of: 0) { _ in }
            }
        }
    }

    @Test func aReadOnlyStoreNeedsAndHasNoWritePrivileges() async throws {
        let place = try await PostgresStoreHarness.makeDatabase()
        try await place.withStore { store in
            try await store.prepare(Samples.second)
            try await write(1, to: store)
        }
        let role = "reader_\(place.database)"
        try await place.execute(
            """
            CREATE ROLE \(role) LOGIN; GRANT USAGE ON SCHEMA "\(place.schema)" TO \(role);
            GRANT SELECT ON ALL TABLES IN SCHEMA "\(place.schema)" TO \(role)
            """)
        let before = try await place.withStore { try await prepared($0) }
        try await place.withStore { configuration in
            configuration.shards[0]["user"] = role
            configuration.isReadOnly = true
        } _: { store in
            let seen = try await prepared(store)
            #expect(seen == before)
            let held = try await store.withSnapshot(of: 0) { try await Sight($0) }
            #expect(held == before)
            // Nobody else's rights help.
            let refused = await #expect(throws: RecordStoreError.self) { try await write(2, to: store) }
            #expect(refused?.code == .readOnly, "\(String(describing: refused))")
            let (first, second) = (Samples.second.entries[0].schema, Samples.second.entries[1].schema)
            let toy = Table(name: "toy", columns: [Column(name: "name", type: .text)])
            let newer = Samples.history(first, second, Schema(tables: second.tables + [toy]))
            let lacking = await #expect(throws: RecordStoreError.self) { try await store.prepare(newer) }
            #expect(lacking?.message.contains("weir migrate") == true)
        }
        try await place.execute("REVOKE SELECT ON \"\(place.schema)\".pet FROM \(role)")
        try await place.withStore { configuration in
            configuration.shards[0]["user"] = role
            configuration.isReadOnly = true
        } _: { store in
            let refused = await #expect(throws: RecordStoreError.self) { try await store.prepare(Samples.second) }
            #expect(refused?.message.contains("GRANT SELECT on it") == true, "\(String(describing: refused))")
        }
    }

    private func prepared(_ store: PostgresRecordStore) async throws -> Sight {
        try await store.prepare(Samples.second)
        return try await Sight(store)
    }

    private func expect(_ store: PostgresRecordStore, holds table: String) async throws {
        let found = try await store.firstContent() ?? "nothing"
        #expect(found.hasSuffix(table))
    }

    @Test func namesATableThatHasARow() async throws {
        let place = try await PostgresStoreHarness.make()
        try await place.withStore { store in
            try await store.prepare(Samples.second)
            #expect(try await store.firstContent() == nil)
            try await place.execute("INSERT INTO weir_owners (sync_id, partition) VALUES ('me', 0)")
            try await expect(store, holds: "\"weir_owners\"")
            try await place.execute("DELETE FROM weir_owners")
            try await write(1, to: store)
            try await place.execute(
                "DELETE FROM weir_partitions; DELETE FROM weir_owners; DELETE FROM weir_devices; DELETE FROM weir_outcomes"
            )
            try await expect(store, holds: "\"person\"")
            try await place.execute("DELETE FROM person")
            try await expect(store, holds: "\"pet\"")
        }
    }
}
