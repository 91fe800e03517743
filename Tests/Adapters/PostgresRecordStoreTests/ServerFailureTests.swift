import Foundation
import Postgres
import PostgresRecordStore
import PostgresServer
import RecordStore
import SyncModel
import Testing

@Suite(.enabled(if: PostgresServer.programs != nil, "\(PostgresServer.skipReason)"))
struct ServerFailureTests {
    /// Commits fail as retriable, and after the restart the tables have one position with exactly its rows.
    @Test func aCrashOfTheServerKeepsPositionAndRowsConsistent() async throws {
        // The disk is written to so rarely that a crash takes commits back.
        let server = try await PostgresServer.start(settings: ["wal_writer_delay": "10s"])
        let place = PostgresStoreHarness(server: server, schema: "weir", database: "postgres")
        try await place.withStore { store in
            try await store.prepare(Samples.first)
            func step(_ number: Int64) -> StoreStep {
                // Rows that are written anew each time, and one of a new owner.
                let rows = (0..<20).map { Samples.row("\($0)", version: number) }
                return Samples.step(
                    number, rows + [Samples.row("own", of: "owner \(number)")], [Samples.outcome(number)])
            }
            var number: Int64 = 1
            for _ in 0..<3 {
                for count in 0..<30 {
                    // What comes before is there for ever; a crash may take back anything behind it.
                    if count == 10 { try await place.execute("CHECKPOINT") }
                    try await store.commit([step(number)])
                    number += 1
                }
                try await server.crash()
                let down = await #expect(throws: RecordStoreError.self) { try await store.commit([step(number)]) }
                #expect(down?.code == .unavailable)
                #expect(down?.isRetriable == true)
                let read = await #expect(throws: RecordStoreError.self) { _ = try await store.position(of: 0) }
                #expect(read?.isRetriable == true)
                try await server.startAgain()
                // A worker that goes on is fenced where its commits were taken back.
                do {
                    try await store.commit([step(number)])
                    number += 1
                } catch let error as RecordStoreError {
                    #expect(error.code == .fenced)
                }
                // Without a sync at each commit the newest may be gone, all of each or nothing.
                let stands = try #require(try await store.position(of: 0))
                #expect(stands.orderedOffset <= number - 1)
                #expect(stands == Samples.position(stands.orderedOffset))
                let rows = try await store.rows(step(1).rows.prefix(20).map(\.key), in: 0, schemaOrdinal: 1)
                let versions = rows.map(\.version)
                #expect(versions == Array(repeating: stands.orderedOffset, count: 20))
                let progress = try await store.progress([.init(key: Samples.device, batch: 1)], in: 0)
                #expect(progress.map(\.highestBatch) == [stands.orderedOffset])
                number = stands.orderedOffset + 1
            }
            // Every owner of rows is known, so that a snapshot finds them.
            let orphans = "SELECT DISTINCT sync_id FROM person EXCEPT SELECT sync_id FROM weir_owners"
            #expect(try await place.query(orphans) == [])
            #expect(try await place.query("SELECT count(*)::text FROM weir_owners") == [["\(number)"]])
        }
        await server.end()
        #expect(!FileManager.default.fileExists(atPath: server.folder))
    }

    @Test func anUnreachableServerIsRetriableAndTheErrorHasNoPassword() async throws {
        let secret = "hunter2-\(UUID().uuidString)"
        let parameters = try ConnectionParameters("postgresql://me:\(secret)@%2Ftmp%2Fnobody-\(UUID().uuidString)/x")
        #expect(!"\(parameters)".contains(secret))
        #expect(!String(reflecting: parameters).contains(secret))
        var dumped = ""
        dump(parameters, to: &dumped)
        #expect(!dumped.contains(secret))
        let store = try await PostgresRecordStore.open(.init(shards: [parameters]))
        let error = await #expect(throws: RecordStoreError.self) { try await store.prepare(Samples.first) }
        #expect(error?.code == .unavailable)
        #expect(error?.isRetriable == true)
        #expect(error?.message.contains("nobody-") == true)
        #expect(error?.message.contains(secret) == false)
        await store.close()
    }

    @Test func namesAMissingDatabase() async throws {
        let server = try await PostgresServer.shared()
        let place = PostgresStoreHarness(server: server, schema: "weir", database: "none")
        try await place.withStore { store in
            let error = await #expect(throws: RecordStoreError.self) { try await store.prepare(Samples.first) }
            #expect(error?.message.contains("\"none\" does not exist") == true)
            #expect(error?.message.contains("3D000") == true)
            #expect(error?.isRetriable == false)
        }
    }

    @Test func aReadOnlyServerIsRetriable() async throws {
        let place = try await PostgresStoreHarness.makeDatabase()
        try await place.withStore { store in
            try await store.prepare(Samples.first)
            try await place.execute("ALTER DATABASE \(place.database) SET default_transaction_read_only = on")
            try await place.execute(
                "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE application_name = 'weir' "
                    + "AND datname = current_database()")
            let error = await #expect(throws: RecordStoreError.self) { try await store.commit([Samples.step(1)]) }
            #expect(error?.isRetriable == true)
            #expect(error?.message.contains("read-only") == true)
            let admin = PostgresStoreHarness(server: place.server, schema: place.schema, database: "postgres")
            try await admin.execute("ALTER DATABASE \(place.database) RESET default_transaction_read_only")
            try await store.commit([Samples.step(1)])
        }
    }

    @Test func anOwnerCannotChangeItsPartition() async throws {
        let place = try await PostgresStoreHarness.make()
        try await place.withStore { store in
            try await store.prepare(Samples.first)
            try await store.commit([Samples.step(1, [Samples.row("a")])])
        }
        try await place.withStore { store in
            try await store.prepare(Samples.first)
            let error = await #expect(throws: RecordStoreError.self) {
                try await store.commit([Samples.step(1, [Samples.row("a")], partition: 1)])
            }
            #expect(error?.code == .incompatibleTables)
            #expect(try await store.position(of: 1) == nil)
        }
    }
}
