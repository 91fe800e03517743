import Configuration
import Postgres
import PostgresRecordStore
import PostgresServer
import RecordStore
import SyncModel
import Testing

@Suite(.enabled(if: PostgresServer.programs != nil, "\(PostgresServer.skipReason)"))
struct ShardTests {
    /// Each step of ordering reads the position: what is known of the owners must outlast that, and nothing else.
    @Test func ownersAreRecordedOnceUntilAnotherStoreMovesThePartition() async throws {
        let place = try await PostgresStoreHarness.makeDatabase()
        let row = Samples.row("a", of: "owner")
        func commit(_ number: Int64, to store: PostgresRecordStore) async throws {
            try await store.commit([Samples.step(number, [row])])
            #expect(try await store.position(of: 0) == Samples.position(number))
        }
        /// The owners recorded, which are removed.
        func recordedOwners() async throws -> [[String?]] {
            try await place.query("DELETE FROM weir_owners RETURNING sync_id")
        }
        try await place.withStore { store in
            try await store.prepare(Samples.first)
            try await commit(1, to: store)
            #expect(try await recordedOwners() == [["owner"]])
            for number in 2...4 { try await commit(Int64(number), to: store) }
            #expect(try await recordedOwners() == [])
            try await place.withStore { other in
                try await other.prepare(Samples.first)
                try await commit(5, to: other)
            }
            #expect(try await recordedOwners() == [["owner"]])
            #expect(try await store.position(of: 0) == Samples.position(5))
            try await commit(6, to: store)
            #expect(try await recordedOwners() == [["owner"]])
        }
    }

    @Test func aPartitionIsInTheDatabaseOfItsRemainder() async throws {
        let places = [
            try await PostgresStoreHarness.makeDatabase(), try await PostgresStoreHarness.makeDatabase(),
            try await PostgresStoreHarness.makeDatabase(),
        ]
        func configuration(_ order: [Int]) throws -> PostgresRecordStoreConfiguration {
            let shards = try order.map { try places[$0].configuration.shards[0] }
            return PostgresRecordStoreConfiguration(shards: shards).with(\.connections, 2)
        }
        let store = try await PostgresRecordStore.open(configuration([0, 1, 2]))
        try await store.prepare(Samples.first)
        let rows = (0..<7).map { Samples.row("a", of: "owner \($0)") }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for partition in 0..<7 {
                group.addTask {
                    try await store.commit([Samples.step(1, [rows[partition]], partition: partition)])
                }
            }
            try await group.waitForAll()
        }
        for partition in 0..<7 {
            #expect(try await store.position(of: partition) == Samples.position(1))
            #expect(try await store.rows([rows[partition].key], in: partition, schemaOrdinal: 1) == [rows[partition]])
        }
        for (number, place) in places.enumerated() {
            let found = try await place.query("SELECT partition::text FROM weir.weir_partitions ORDER BY partition")
            let expected: [[String?]] = [[["0"], ["3"], ["6"]], [["1"], ["4"]], [["2"], ["5"]]][number]
            #expect(found == expected)
        }
        try await store.commit([Samples.step(2, partition: 1), Samples.step(2, partition: 4)])
        let error = await #expect(throws: RecordStoreError.self) {
            try await store.commit([Samples.step(3, partition: 1), Samples.step(2, partition: 2)])
        }
        #expect(error?.isRetriable == false)
        #expect(try await store.position(of: 1) == Samples.position(2))
        await store.close()

        // Another order or number of databases would look for partitions where they are not.
        for order in [[1, 0, 2], [0, 1], [0]] {
            let wrong = try await PostgresRecordStore.open(configuration(order))
            let error = await #expect(throws: RecordStoreError.self) { try await wrong.prepare(Samples.first) }
            #expect(error?.code == .incompatibleTables)
            #expect(error?.message.contains("restore that list") == true)
            await wrong.close()
        }
    }
}
