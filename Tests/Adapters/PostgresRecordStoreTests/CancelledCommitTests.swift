import Postgres
import PostgresRecordStore
import PostgresServer
import RecordStore
import SyncModel
import Testing

/// Commits whose callers are cancelled, since the server is silent.
@Suite(.enabled(if: PostgresServer.programs != nil, "\(PostgresServer.skipReason)"), .timeLimit(.minutes(5)))
struct CancelledCommitTests {
    /// Silent before the server has the whole transaction, and after it was committed.
    @Test(arguments: [(CuttingProxy.Direction.toServer, 200), (.toClient, 0)])
    func endAtOnceAndAreWrittenOnceHoweverFarTheyCame(direction: CuttingProxy.Direction, bytes: Int) async throws {
        let place = try await PostgresStoreHarness.make()
        try await place.withProxiedStore { store, proxy in
            try await store.prepare(Samples.first)
            try await store.commit([Samples.step(1, [Samples.row("a")], [Samples.outcome(1)])])
            let step = Samples.step(2, [Samples.row("a", version: 2)], [Samples.outcome(2)])
            proxy.hold(direction, after: bytes)
            let call = Task { try await store.commit([step]) }
            await proxy.waitUntilHeld()
            call.cancel()
            let error = await #expect(throws: RecordStoreError.self) { try await call.value }
            #expect(error?.code == .unavailable)
            #expect(error?.isRetriable == true)
            proxy.letGo()
            // The abandoned session may still commit.
            try await store.commit([step])
            #expect(try await store.position(of: 0) == step.position)
            #expect(try await place.query("SELECT outcomes::text FROM weir_devices") == [["2"]])
            try await store.commit([Samples.step(3)])
        }
    }

    @Test func aCommitThatWaitsIsNotWrittenAndOthersAre() async throws {
        try await withHeldCommits { store, proxy, commits in
            commits[1].cancel()
            let error = await #expect(throws: RecordStoreError.self) { try await commits[1].value }
            #expect(error?.isRetriable == true)
            proxy.letGo()
            try await commits[0].value
            try await commits[2].value
            #expect(try await store.position(of: 1) == nil)
            #expect(try await store.position(of: 2) == Samples.position(1))
        }
    }

    @Test func othersOfTheSameTransactionGoOn() async throws {
        try await withHeldCommits { store, proxy, commits in
            // The writer continues with the other two in a session that is silent, too.
            commits[0].cancel()
            await #expect(throws: RecordStoreError.self) { try await commits[0].value }
            commits[1].cancel()
            await #expect(throws: RecordStoreError.self) { try await commits[1].value }
            proxy.letGo()
            try await commits[2].value
            #expect(try await store.position(of: 2) == Samples.position(1))
        }
    }

    /// Commits of the partitions 0, 1 and 2: the server is silent in that of the first one, and the others wait for it.
    private func withHeldCommits(
        _ body: (PostgresRecordStore, CuttingProxy, [Task<Void, any Error>]) async throws -> Void
    ) async throws {
        let place = try await PostgresStoreHarness.make()
        try await place.withProxiedStore { store, proxy in
            try await store.prepare(Samples.first)
            proxy.hold(.toServer, after: 0)
            let first = commit(0, to: store)
            await proxy.waitUntilHeld()
            try await body(store, proxy, [first, commit(1, to: store), commit(2, to: store)])
        }
    }

    /// Begins to write a row of a partition.
    private func commit(_ partition: Int, to store: PostgresRecordStore) -> Task<Void, any Error> {
        let step = Samples.step(1, [Samples.row("a", of: "owner \(partition)")], partition: partition)
        return Task.immediate { try await store.commit([step]) }
    }
}
