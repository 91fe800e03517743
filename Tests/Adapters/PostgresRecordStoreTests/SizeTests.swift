import PostgresRecordStore
import PostgresServer
import RecordStore
import SyncModel
import Testing

/// The size of a partition whose tables are too large to count.
@Suite(.enabled(if: PostgresServer.programs != nil, "\(PostgresServer.skipReason)"))
struct SizeTests {
    @Test func theSizeOfALargeTableIsEstimatedForEachPartition() async throws {
        let place = try await PostgresStoreHarness.make()
        try await place.withStore { store in
            try await store.prepare(Samples.first)
            // A partition with a quarter of the rows and one with the rest; some 20 MB, of which 8 are looked at.
            try await place.execute(
                """
                INSERT INTO weir_owners (sync_id, partition) SELECT 'owner ' || i, (i % 4 = 0)::integer FROM generate_series(0, 15) AS i;
                INSERT INTO person SELECT 'owner ' || i % 16, i::text, 'k', i, 1, false, now(), now(), 'owner', 'k', 1,
                    true, 0, repeat('x', 40), i, repeat('y', 60), NULL, NULL, NULL FROM generate_series(1, 100000) AS i
                """)
            for (partition, rows) in [(0, 75_000), (1, 25_000)] {
                let size = try await store.size(of: partition)
                #expect(!size.isExact)
                #expect(abs(size.rows - rows) < rows / 5, "\(size.rows) of \(rows)")
                // As it stands, the same again.
                #expect(try await store.size(of: partition) == size)
            }
            #expect(try await store.size(of: 2) == PartitionSize(rows: 0, outcomes: 0, isExact: false))
        }
    }
}
