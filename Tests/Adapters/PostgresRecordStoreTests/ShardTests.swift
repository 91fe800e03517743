import Configuration
import Postgres
import PostgresRecordStore
import PostgresServer
import RecordStore
import SyncModel
import Testing

@Suite(.enabled(if: PostgresServer.programs != nil, "\(PostgresServer.skipReason)"))
struct ShardTests {
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
