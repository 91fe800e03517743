import ChangeLog
import Configuration
import MemoryChangeLog
import Ordering
import RecordStore
import SQLiteRecordStore
import SyncModel
import SyncWire
import TestClocks
import Testing

/// Whoever takes over repeats the same results, and the tables end the same (I2, I4, I5).
@Suite(.timeLimit(.minutes(5)))
struct RestartTests {
    /// With no room in the overlay each message is written before the next is read.
    private static let oneByOne = OrderingConfiguration().with(\.stepBytes, 1).with(\.overlayBytes, 0)

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
            let uploads = [0: UploadProgress(offset: 1, part: 0)]
            let other = StoreStep(
                partition: 0, expected: nil,
                position: StoredPosition(
                    state: PartitionState(nextOffset: 1, uploads: uploads, schemaOrdinal: 1), orderedOffset: 0),
                rows: [],
                outcomes: [])
            let store = WatchedStore(
                tables,
                beforeRead: { number throws(RecordStoreError) in
                    if number == 0 { try await tables.commit([other]) }
                })
            // Begun again, it goes on from where the other one stands.
            let stage = Stage(log, store)
            await stage.store.until(3)
            try await stage.stop()
            let pieces = try await log.records(of: TopicPartition(.ordered, 0)).map {
                try OrderedPiece(decoding: $0.value)
            }
            #expect(pieces.map(\.changesOffset) == [1, 2])
        }
    }

    @Test
    func refusesTheTablesWhereAnotherTopicHasGrownBeyondThem() async throws {
        try await withLogAndTables { log, tables in
            var maker = PartMaker()
            try await log.append(maker.creations(3))
            let first = Stage(log, WatchedStore(tables))
            await first.store.until(3)
            try await first.stop()
            // What ingest writes from then on, into a topic that was recreated.
            let recreated = MemoryChangeLog(MemoryLogContents(partitionCount: 2))
            try await recreated.append((4...8).map { maker.part([.edit("r\($0)", ["\($0)"])], batch: Int64($0)) })
            let stage = Stage(recreated, WatchedStore(tables), clock: ManualClock())
            await stage.lines.until("is paused", "changes[0]: the record before offset 3 is not the one")
            try await stage.stop()
            #expect(try await recreated.records(of: TopicPartition(.ordered, 0)).isEmpty)
            #expect(try await tables.position(of: 0)?.state.nextOffset == 3)
            await recreated.close()
        }
    }

    /// Without the results of before, or with some of those that come next.
    @Test(arguments: [0, 1])
    func goesOnInATopicOfResultsThatWasMadeAnew(published: Int) async throws {
        try await withLogAndTables { log, tables in
            let parts = randomParts(20, seed: 31, owners: ["abc"])
            let byHand = try ByHand(parts)
            try await log.append(Array(parts[..<10]))
            let first = Stage(log, WatchedStore(tables))
            await first.store.until(10)
            try await first.stop()
            let before = try await tables.position(of: 0)
            #expect(before?.orderedOffset ?? 0 > 0)
            let recreated = MemoryChangeLog(MemoryLogContents(partitionCount: 2))
            try await recreated.append(parts)
            let held = try await log.records(of: TopicPartition(.ordered, 0)).map(\.value)
            let next = Array(byHand.pieces[held.count...])
            try await recreated.publish(Array(next[..<published]))
            let second = Stage(recreated, WatchedStore(tables))
            await second.lines.until("The topic ordered was recreated")
            // At once, not with the next message: streams are made again from there.
            await second.store.events.until { events in
                events.contains { event in
                    guard case .committed(let steps) = event else { return false }
                    return steps.map(\.position) == [StoredPosition(state: before?.state ?? .init(), orderedOffset: 0)]
                }
            }
            await second.store.until(20)
            try await second.stop()
            #expect(
                try await recreated.records(of: TopicPartition(.ordered, 0)).map(\.value) == Array(next[..<published])
                    + next
            )
            #expect(try await second.store.tables(of: 0) == byHand.tables)
            await recreated.close()
        }
    }

    @Test
    func refusesATopicOfResultsThatLostItsEnd() async throws {
        try await withLogAndTables { log, tables in
            var maker = PartMaker()
            let parts = maker.creations(3)
            try await log.append(parts)
            let first = Stage(log, WatchedStore(tables))
            await first.store.until(3)
            try await first.stop()
            let held = try await log.records(of: TopicPartition(.ordered, 0)).map(\.value)
            let cut = MemoryChangeLog(MemoryLogContents(partitionCount: 2))
            try await cut.append(parts)
            try await cut.publish(Array(held.dropLast()))
            let stage = Stage(cut, WatchedStore(tables), clock: ManualClock())
            await stage.lines.until("is paused", "ordered[0]: the tables hold results up to offset")
            try await stage.stop()
            #expect(try await cut.records(of: TopicPartition(.ordered, 0)).count == held.count - 1)
            await cut.close()
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
