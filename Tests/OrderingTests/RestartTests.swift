import ChangeLog
import MemoryChangeLog
import Ordering
import RecordStore
import SQLiteRecordStore
import SyncModel
import SyncWire
import Testing

/// Whoever takes over repeats the same results, and the tables end the same (I2, I4, I5).
@Suite(.timeLimit(.minutes(1)))
struct RestartTests {
    /// With no room in the overlay each message is written before the next is read.
    private static let oneByOne = OrderingConfiguration(stepBytes: 1, overlayBytes: 0)

    @Test
    func repeatsTheSamePiecesAfterItDiedBetweenPublishingAndWriting() async throws {
        try await withLogAndTables { log, tables in
            let parts = randomParts(40, seed: 11, owners: ["abc", "def"])
            let byHand = try ByHand(parts)
            try await log.append(parts)
            let dying = WatchedStore(tables) { _ throws(RecordStoreError) in
                throw RecordStoreError(.closed, message: "the process dies")
            }
            await #expect(throws: RecordStoreError.self) { try await Stage(log, dying).ended() }
            let published = try await log.records(of: TopicPartition(.ordered, 0)).map(\.value)
            #expect(!published.isEmpty && byHand.pieces.starts(with: published))
            #expect(try await dying.position(of: 0) == nil)

            let next = Stage(log, WatchedStore(tables))
            await next.store.until(40)
            try await next.stop()
            let all = try await log.records(of: TopicPartition(.ordered, 0)).map(\.value)
            #expect(all == published + byHand.pieces)
            #expect(try await log.piecesOnce(in: 0) == byHand.pieces)
            #expect(try await next.store.tables(of: 0) == byHand.tables)
        }
    }

    @Test
    func endsWithTheSameTablesWhereverItDied() async throws {
        let parts = randomParts(24, seed: 5, owners: ["abc", "def"])
        let byHand = try ByHand(parts)
        for dyingAt in 0..<24 {
            try await withLogAndTables { log, tables in
                try await log.append(parts)
                let dying = WatchedStore(tables) { number throws(RecordStoreError) in
                    if number == dyingAt { throw RecordStoreError(.closed, message: "the process dies") }
                }
                await #expect(throws: RecordStoreError.self) {
                    try await Stage(log, dying, configuration: Self.oneByOne).ended()
                }
                let before = try await dying.position(of: 0)?.state.nextOffset ?? 0
                #expect(before == Int64(dyingAt))
                let next = Stage(log, WatchedStore(tables))
                await next.store.until(24)
                try await next.stop()
                #expect(try await log.piecesOnce(in: 0) == byHand.pieces, "died at \(dyingAt)")
                #expect(try await next.store.tables(of: 0) == byHand.tables, "died at \(dyingAt)")
            }
        }
    }

    /// The rows that it reads know of messages that it has yet to decide: what would come of them is no result.
    @Test
    func publishesNothingOnceAnotherWorkerHasMovedTheTablesOn() async throws {
        try await withLogAndTables { log, tables in
            var maker = PartMaker()
            try await log.append(maker.creations(3))
            let other = StoreStep(
                partition: 0, expected: nil,
                position: StoredPosition(state: PartitionState(nextOffset: 1), orderedOffset: 1), rows: [], outcomes: []
            )
            let store = WatchedStore(
                tables,
                beforeRead: { number throws(RecordStoreError) in
                    if number == 0 { try await tables.commit([other]) }
                })
            // Begun again, it finds that the other's results are not in the log.
            let error = await #expect(throws: OrderingError.self) { try await Stage(log, store).ended() }
            guard case .resultsLost? = error else {
                Issue.record("\(String(describing: error))")
                return
            }
            #expect(try await log.records(of: TopicPartition(.ordered, 0)).isEmpty)
        }
    }

    @Test
    func makesTheTablesAgainFromChanges() async throws {
        let parts = randomParts(50, seed: 21, owners: ["abc"])
        let byHand = try ByHand(parts)
        try await withLogAndTables { log, tables in
            try await log.append(parts)
            let first = Stage(log, WatchedStore(tables))
            await first.store.until(50)
            try await first.stop()
            try await withTemporaryFolder { folder in
                let empty = try await openTables(folder)
                let second = Stage(log, WatchedStore(empty))
                await second.store.until(50)
                try await second.stop()
                #expect(try await second.store.tables(of: 0) == byHand.tables)
                #expect(try await log.piecesOnce(in: 0) == byHand.pieces)
                await empty.close()
            }
        }
    }
}
