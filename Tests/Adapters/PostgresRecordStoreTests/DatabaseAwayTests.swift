import Foundation
import Postgres
import PostgresRecordStore
import PostgresServer
import RecordStore
import SyncModel
import Testing

/// Partition p is in database p mod n: a database that is away delays the others' partitions neither at the start nor when a version
/// is learned.
@Suite(.timeLimit(.minutes(5))) struct DatabaseAwayTests {
    /// A store on a database and on a server that can be stopped.
    private func withStore(
        _ body: (PostgresRecordStore, PostgresServer, PostgresStoreHarness) async throws -> Void
    ) async throws {
        let place = try await PostgresStoreHarness.makeDatabase()
        let server = try await PostgresServer.start()
        let other = PostgresStoreHarness(server: server, schema: place.schema, database: "postgres")
        let result: Result<Void, any Error>
        do {
            result = .success(
                try await place.withStore { configuration in
                    let shard = try other.configuration.shards[0]
                    configuration.shards.append(shard)
                } _: { store in
                    try await body(store, server, other)
                })
        } catch {
            result = .failure(error)
        }
        await server.end()
        try result.get()
    }

    @Test func thePartitionsOfTheOtherDatabasesAreWrittenAfterAStart() async throws {
        try await withStore { store, server, _ in
            try await server.stop()
            try await store.prepare(Samples.first)
            try await store.commit([Samples.step(1, partition: 0)])
            for _ in 0..<2 {
                let error = await #expect(throws: RecordStoreError.self) {
                    try await store.commit([Samples.step(1, partition: 1)])
                }
                #expect(error?.isRetriable == true)
            }
            try await server.startAgain()
            try await store.commit([Samples.step(1, partition: 1)])
            #expect(try await store.position(of: 1) == Samples.step(1, partition: 1).position)
        }
    }

    /// The first thing that ordering asks for is the position.
    @Test func theFirstReadMakesTheTablesOfADatabaseThatWasAway() async throws {
        try await withStore { store, server, _ in
            try await server.stop()
            try await store.prepare(Samples.first)
            try await server.startAgain()
            #expect(try await store.position(of: 1) == nil)
            #expect(try await store.migrationPlans(Samples.first).map(\.statements) == [[], []])
        }
    }

    /// As a fan-out does, which serves its streams without the tables.
    @Test func aStoreThatPreparesOnUseNeedsTheDatabaseOfAPartitionAlone() async throws {
        try await withStore { store, server, _ in
            try await server.stop()
            try store.prepareOnUse(Samples.first, epoch: PostgresRecordStore.epoch)
            try await store.commit([Samples.step(1, partition: 0)])
            let error = await #expect(throws: RecordStoreError.self) { try await store.size(of: 1) }
            #expect(error?.isRetriable == true)
            try await server.startAgain()
            _ = try await store.size(of: 1)
        }
    }

    @Test func aVersionIsLearnedAndItsTablesAreMadeOnceTheDatabaseIsBack() async throws {
        try await withStore { store, server, other in
            try await store.prepare(Samples.first)
            for partition in 0...1 { try await store.commit([Samples.step(1, partition: partition)]) }
            try await server.stop()
            try await store.prepare(Samples.second)
            try await store.commit([Samples.step(2, partition: 0)])
            try await server.startAgain()
            let read = try await store.rows([], in: 1, schemaOrdinal: 2, maximumBytes: .max)
            #expect(read.rows.isEmpty)
            try await store.commit([Samples.step(2, partition: 1)])
            #expect(try await store.migrationPlans(Samples.second).map(\.statements) == [[], []])
        }
    }

    @Test func aDatabaseWithAnotherEpochIsRefusedWheneverItIsReached() async throws {
        try await withStore { store, server, other in
            try await other.withStore { try await $0.prepare(Samples.first, epoch: "another") }
            let atOnce = await #expect(throws: RecordStoreError.self) { try await store.prepare(Samples.first) }
            #expect(atOnce?.code == .incompatibleTables)
            try await server.stop()
            try await store.prepare(Samples.first)
            try await server.startAgain()
            let later = await #expect(throws: RecordStoreError.self) {
                try await store.commit([Samples.step(1, partition: 1)])
            }
            #expect(later?.code == .incompatibleTables)
            try await store.commit([Samples.step(1, partition: 0)])
        }
    }

    @Test func withoutAnyDatabaseNothingIsPrepared() async throws {
        let parameters = try (1...2).map { number in
            try ConnectionParameters("postgresql://me@%2Ftmp%2Fnobody-\(UUID().uuidString)/x\(number)")
        }
        let store = try await PostgresRecordStore.open(.init(shards: parameters))
        let error = await #expect(throws: RecordStoreError.self) { try await store.prepare(Samples.first) }
        #expect(error?.code == .unavailable)
        await store.close()
    }
}
