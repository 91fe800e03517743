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

/// What passes is tried again; what does not stops with an explanation.
@Suite(.timeLimit(.minutes(1)))
struct FailureTests {
    private static let delay = Duration.milliseconds(1500)
    private static let configuration = OrderingConfiguration().with(\.stepBytes, 1).with(\.retryDelay, delay)
    private static let busy = RecordStoreError(.unavailable, message: "busy", isRetriable: true)

    @Test
    func triesAgainWhenTheTablesFailForAWhile() async throws {
        try await withLogAndTables { log, tables in
            let parts = randomParts(30, seed: 31, owners: ["abc"])
            try await log.append(parts)
            let store = WatchedStore(tables) { number throws(RecordStoreError) in
                if number < 2 { throw Self.busy }
            } beforeRead: { number throws(RecordStoreError) in
                if number == 0 { throw Self.busy }
            }
            let stage = Stage(log, store, configuration: Self.configuration)
            await store.until(30)
            try await stage.stop()
            #expect(stage.clock.sleeps == [Self.delay, Self.delay, Self.delay])
            #expect(stage.lines.all.facts.contains { $0.contains("trying again") && $0.contains("busy") })
            // Writes that fail are told of, too: the process is not ready then.
            #expect(stage.failures.all.count == 3)
            #expect(stage.failures.all.allSatisfy { $0.hasPrefix("0: ") && $0.contains("busy") })
            let byHand = try ByHand(parts)
            #expect(try await store.tables(of: 0) == byHand.tables)
            #expect(try await log.piecesOnce(in: 0) == byHand.pieces)
        }
    }

    /// A partition of tables that are away is released at once: a rebalance waits for it, with all partitions revoked together.
    @Test
    func endsWithoutAnotherAttemptWhereTheTablesAreAway() async throws {
        try await withLogAndTables { log, tables in
            var maker = PartMaker()
            try await log.append(maker.creations(3))
            let store = WatchedStore(tables) { _ throws(RecordStoreError) in throw Self.busy }
            let clock = ManualClock()
            let stage = Stage(log, store, configuration: Self.configuration, clock: clock)
            await clock.sleeper(for: Self.delay)
            // Its time never comes.
            try await stage.stop()
            #expect(stage.failures.all.count == 1)
            #expect(try await store.position(of: 0) == nil)
            // The next worker repeats what was published.
            let next = Stage(log, WatchedStore(tables), configuration: Self.configuration)
            await next.store.until(3)
            try await next.stop()
            #expect(try await next.store.tables(of: 0).rows.count == 3)
        }
    }

    @Test(arguments: [true, false])
    func triesAgainWhenTheLogFailsForAWhile(isStored: Bool) async throws {
        try await withLogAndTables { log, tables in
            let parts = randomParts(30, seed: 32, owners: ["abc"])
            try await log.append(parts)
            let lost = ChangeLogError(.inputOutput, message: "the broker is away", isRetriable: true)
            log.failNextAppend(lost, isStored: isStored)
            let stage = Stage(log, WatchedStore(tables), configuration: Self.configuration)
            await stage.store.until(30)
            try await stage.stop()
            #expect(stage.clock.sleeps == [Self.delay])
            let byHand = try ByHand(parts)
            #expect(try await stage.store.tables(of: 0) == byHand.tables)
            #expect(try await log.piecesOnce(in: 0) == byHand.pieces)
        }
    }

    @Test
    func endsWithTheCauseWhenTheLogFailsForGood() async throws {
        try await withLogAndTables { log, tables in
            var maker = PartMaker()
            try await log.append(maker.creations(5))
            let cause = ChangeLogError(.readOnly, message: "the disk is read-only")
            log.failNextAppend(cause)
            let stage = Stage(log, WatchedStore(tables), configuration: Self.configuration)
            await #expect(throws: cause) { try await stage.ended() }
            #expect(try await stage.store.position(of: 0) == nil)
        }
    }

    @Test
    func goesOnWhereAnotherWorkerHasMovedThePartition() async throws {
        try await withLogAndTables { log, tables in
            var maker = PartMaker()
            try await log.append(maker.creations(3))
            let uploads = [0: UploadProgress(offset: 2, part: 0)]
            let other = StoredPosition(
                state: PartitionState(nextOffset: 2, uploads: uploads, schemaOrdinal: 1), orderedOffset: 1)
            let store = WatchedStore(tables) { number throws(RecordStoreError) in
                guard number == 0 else { return }
                try await tables.commit([
                    StoreStep(partition: 0, expected: nil, position: other, rows: [], outcomes: [])
                ])
            }
            let stage = Stage(log, store)
            await stage.store.until(3)
            try await stage.stop()
            #expect(stage.lines.all.facts.contains { $0.contains("another worker has written it") })
            #expect(stage.clock.sleeps == [OrderingConfiguration().retryDelay])
            // What it had decided for the first two messages was not written: the other's position stands for them.
            #expect(try await store.tables(of: 0).rows.count == 1)
        }
    }

    @Test
    func isNotFencedByItsOwnWriteDuringARead() async throws {
        try await withLogAndTables { log, tables in
            var maker = PartMaker()
            let parts = maker.creations(2)
            try await log.append(parts)
            let written = Signal<Bool>()
            // After the position at the start, each read of rows is followed by one of the position.
            let store = WatchedStore(tables) { _ in
            } beforePosition: { number in
                switch number {
                case 1: log.pause()
                case 2:
                    // The first part's results are acknowledged, and so written, while the second part's rows are read.
                    log.resume()
                    await written.until { !$0.isEmpty }
                default: break
                }
            }
            let stage = Stage(log, store, configuration: Self.configuration)
            await store.until(1)
            written.add(true)
            await store.until(2)
            try await stage.stop()
            #expect(stage.clock.sleeps.isEmpty)
            #expect(try await log.records(of: TopicPartition(.ordered, 0)).map(\.value) == ByHand(parts).pieces)
        }
    }

    @Test
    func stopsWhenTheTablesStandWhereChangesDoesNot() async throws {
        try await withLogAndTables { log, tables in
            var maker = PartMaker()
            try await log.append(maker.creations(2))
            let position = StoredPosition(state: PartitionState(nextOffset: 3))
            try await tables.commit([
                StoreStep(partition: 0, expected: nil, position: position, rows: [], outcomes: [])
            ])
            let error = await #expect(throws: OrderingError.self) {
                try await Stage(log, WatchedStore(tables)).ended()
            }
            #expect("\(try #require(error))".contains("the tables are at offset 3, the log holds 0 to 2"))
            #expect(try await log.range(of: TopicPartition(.ordered, 0)).end == 0)
        }
    }
}
