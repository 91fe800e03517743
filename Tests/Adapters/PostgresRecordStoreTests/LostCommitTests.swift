import Foundation
import Fuzzing
import Postgres
import PostgresRecordStore
import PostgresServer
import RecordStore
import Seeded
import SyncModel
import Testing

/// Sessions that end during a commit.
@Suite(.enabled(if: PostgresServer.programs != nil, "\(PostgresServer.skipReason)"))
struct LostCommitTests {
    /// Cuts the connection at a random byte of the request or the response, before or after the commit.
    @Test(arguments: TestLength.seeds(2, long: 30))
    func aCommitWhoseResponseIsLostIsWrittenOnce(seed: UInt64) async throws {
        let place = try await PostgresStoreHarness.make()
        var random = SeededRandom(seed: seed)
        try await place.withProxiedStore { store, proxy in
            try await store.prepare(Samples.first)
            try await store.commit([Samples.step(1, [Samples.row("a")], [Samples.outcome(1)])])
            var losses = 0
            for number in 2...30 as ClosedRange<Int64> {
                let step = Samples.step(number, [Samples.row("a", version: number)], [Samples.outcome(number)])
                if random.next() % 2 == 0 {
                    proxy.cut(.toClient, after: Int(random.next() % 400))
                } else {
                    proxy.cut(.toServer, after: Int(random.next() % 1500))
                }
                try await store.commit([step])
                if !proxy.disarm() { losses += 1 }
                #expect(try await store.position(of: 0) == step.position)
                let count = try await place.query("SELECT outcomes::text FROM weir_devices")
                // Each batch is counted once: what was done before the loss was not done again.
                #expect(count == [["\(number)"]])
            }
            #expect(losses > 10)
            #expect(try await store.rows([Samples.row("a").key], in: 0, schemaOrdinal: 1).map(\.version) == [30])
        }
    }

    /// The first response and the next session are lost: the call fails as retriable, and the caller's retry finds its own
    /// position.
    @Test func aRetryOfTheCallerFindsItsCommit() async throws {
        let place = try await PostgresStoreHarness.makeDatabase()
        try await place.withProxiedStore { store, proxy in
            try await store.prepare(Samples.first)
            try await store.commit([Samples.step(1, [Samples.row("a")])])
            // The server takes no new session, so that the store cannot find out by itself.
            try await place.withLogins(allowed: false) {
                proxy.cut(.toClient, after: 0)
                let error = await #expect(throws: RecordStoreError.self) {
                    try await store.commit([Samples.step(2, [Samples.row("b")])])
                }
                #expect(error?.code == .unavailable)
                #expect(error?.isRetriable == true)
            }
            try await place.expectPosition(2)
            // Together with others' calls, which share a transaction.
            try await withThrowingTaskGroup(of: Void.self) { group in
                for partition in (0..<12).reversed() {
                    let row = Samples.row("b", of: partition == 0 ? "me" : "owner \(partition)")
                    let step = Samples.step(partition == 0 ? 2 : 1, [row], partition: partition)
                    group.addTask { try await store.commit([step]) }
                }
                try await group.waitForAll()
            }
            // Once that is known, the same step is another worker's.
            let error = await #expect(throws: RecordStoreError.self) {
                try await store.commit([Samples.step(2, [Samples.row("b")])])
            }
            #expect(error?.code == .fenced)
            try await store.commit([Samples.step(3)])
        }
    }

    /// Calls of one transaction.
    @Test(arguments: TestLength.seeds(2, long: 30))
    func callsOfALostTransactionAreWrittenOnceEach(seed: UInt64) async throws {
        let place = try await PostgresStoreHarness.make()
        var random = SeededRandom(seed: seed)
        try await place.withProxiedStore { store, proxy in
            try await store.prepare(Samples.first)
            for number in 1...10 as ClosedRange<Int64> {
                proxy.cut(.toClient, after: 200 + Int(random.next() % 600))
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for partition in 0..<6 {
                        let row = Samples.row("a", of: "owner \(partition)", version: number)
                        let step = Samples.step(number, [row], partition: partition)
                        group.addTask { try await commitUntilWritten(step, store) }
                    }
                    try await group.waitForAll()
                }
                _ = proxy.disarm()
            }
            for partition in 0..<6 { #expect(try await store.position(of: partition) == Samples.position(10)) }
        }
        #expect(try await place.query("SELECT DISTINCT version::text FROM person") == [["10"]])
    }

    @Test(arguments: TestLength.seeds(2, long: 30))
    func randomlyTerminatedSessionsLoseAndRepeatNothing(seed: UInt64) async throws {
        let place = try await PostgresStoreHarness.make()
        var random = SeededRandom(seed: seed)
        let ends = (0..<20).map { _ in random.next() % 4 }
        try await place.withStore {
            $0.shards[0]["application_name"] = place.schema
        } _: { store in
            try await store.prepare(Samples.first)
            async let writing: Void = {
                for number in 1...100 as ClosedRange<Int64> {
                    let step = Samples.step(number, [Samples.row("a", version: number)], [Samples.outcome(number)])
                    try await commitUntilWritten(step, store)
                }
            }()
            for count in ends {
                // The server ends sessions of this store, wherever each of them is.
                try await place.execute(
                    """
                    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                    WHERE application_name = '\(place.schema)' LIMIT \(count)
                    """)
            }
            try await writing
            #expect(try await store.position(of: 0) == Samples.position(100))
        }
        #expect(try await place.query("SELECT outcomes::text FROM weir_devices") == [["100"]])
        #expect(try await place.query("SELECT version::text FROM person") == [["100"]])
    }

    /// Writes a step as ordering does, with retries.
    private func commitUntilWritten(_ step: StoreStep, _ store: PostgresRecordStore) async throws {
        while true {
            do {
                return try await store.commit([step])
            } catch  where error.isRetriable {
                continue
            }
        }
    }
}

extension PostgresStoreHarness {
    /// Runs a closure while the database rejects or accepts new sessions.
    fileprivate func withLogins(allowed: Bool, _ body: () async throws -> Void) async throws {
        let admin = PostgresStoreHarness(server: server, schema: schema, database: "postgres")
        try await admin.execute("ALTER DATABASE \(database) ALLOW_CONNECTIONS \(allowed)")
        let outcome: Result<Void, any Error>
        do {
            outcome = .success(try await body())
        } catch {
            outcome = .failure(error)
        }
        try await admin.execute("ALTER DATABASE \(database) ALLOW_CONNECTIONS \(!allowed)")
        try outcome.get()
    }

    /// Expects the partition's position after all transactions that change it.
    fileprivate func expectPosition(_ number: Int64) async throws {
        let found = try await query("SELECT next_offset::text FROM weir_partitions WHERE partition = 0 FOR UPDATE")
        #expect(found == [["\(number)"]])
    }
}
