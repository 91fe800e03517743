import Postgres
import PostgresRecordStore
import PostgresServer
import RecordStore
import Testing

/// A worker that stops responding inside a transaction.
@Suite(.enabled(if: PostgresServer.programs != nil, "\(PostgresServer.skipReason)"))
struct IdleTransactionTests {
    /// A migration hangs between two statements while it holds the lock that another one needs.
    @Test func aSessionThatIsIdleInATransactionIsTerminated() async throws {
        let place = try await PostgresStoreHarness.make()
        let proxy = try CuttingProxy(to: place.server)
        try await place.withStore { configuration in
            configuration.shards[0]["host"] = proxy.folder
            configuration.connections = 1
            configuration.idleTransactionTimeout = .seconds(2)
        } _: { silent in
            // Whatever is held up must not hold up the end.
            defer { proxy.letGo() }
            try await silent.prepare(Samples.first)
            // Behind the answers about the lock, before those about all tables.
            proxy.hold(.toClient, after: 1500)
            let late = Task { try await silent.migrationPlans(Samples.first) }
            await proxy.waitUntilHeld()
            // Waits for the lock until Postgres has ended the silent session.
            try await place.withStore { try await $0.prepare(Samples.second) }
            proxy.letGo()
            // It would have gone on, had nobody ended it.
            let error = await #expect(throws: RecordStoreError.self) { _ = try await late.value }
            #expect(error?.code == .unavailable)
            #expect(error?.isRetriable == true)
            try await silent.prepare(Samples.second)
            try await silent.commit([Samples.step(1)])
            #expect(try await silent.position(of: 0) == Samples.position(1))
        }
        try proxy.end()
    }
}
