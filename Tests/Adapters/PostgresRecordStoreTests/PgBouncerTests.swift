import Postgres
import PostgresRecordStore
import PostgresServer
import RecordStore
import RecordStoreConformance
import SyncModel
import Testing

/// The store through PgBouncer in session mode.
@Suite(
    .enabled(if: PostgresServer.programs != nil, "\(PostgresServer.skipReason)"),
    .enabled(if: PgBouncer.program != nil, "\(PgBouncer.skipReason)"))
struct PgBouncerTests {
    private static let shared = Task {
        try await PgBouncer.start(inFrontOf: try await PostgresServer.shared(), sessions: 200)
    }

    @Test(arguments: RecordStoreConformance.cases)
    func conforms(_ test: ConformanceCase) async throws {
        var configuration = try await PostgresStoreHarness.make().configuration
        configuration.shards = [try ConnectionParameters(try await Self.shared.value.connectionString())]
        let behind = configuration
        try await test.run { try await PostgresRecordStore.open(behind) }
    }

    /// A session's parameters are reset for the next client, and set again for the store.
    @Test func aReusedSessionGetsTheStoresParameters() async throws {
        let place = try await PostgresStoreHarness.make()
        let bouncer = try await PgBouncer.start(inFrontOf: place.server, sessions: 1)
        let parameters = try ConnectionParameters(bouncer.connectionString())
        let other = try await PostgresPool.start(parameters, count: 1)
        try await other.perform { try $0.execute("SET search_path = elsewhere; SET synchronous_commit = on") }
        await other.close()
        try await place.withStore {
            $0.shards = [parameters]
            $0.connections = 1
        } _: { store in
            try await store.prepare(Samples.first)
            try await store.commit([Samples.step(1, [Samples.row("a")])])
            #expect(try await store.rows([Samples.row("a").key], in: 0, schemaOrdinal: 1).count == 1)
        }
        await bouncer.end()
    }

    /// Its sessions end with it; steps are written once nevertheless.
    @Test func aCrashOfThePoolerIsRetriable() async throws {
        let place = try await PostgresStoreHarness.make()
        let bouncer = try await PgBouncer.start(inFrontOf: place.server, sessions: 20)
        try await place.withStore {
            $0.shards = [try ConnectionParameters(bouncer.connectionString())]
        } _: { store in
            try await store.prepare(Samples.first)
            try await store.commit([Samples.step(1, [Samples.row("a")])])
            try await bouncer.kill()
            let error = await #expect(throws: RecordStoreError.self) { try await store.commit([Samples.step(2)]) }
            #expect(error?.code == .unavailable)
            #expect(error?.isRetriable == true)
            try await bouncer.startAgain()
            try await store.commit([Samples.step(2)])
            #expect(try await store.position(of: 0) == Samples.position(2))
        }
        await bouncer.end()
    }
}
