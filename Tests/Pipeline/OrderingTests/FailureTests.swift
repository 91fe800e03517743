import ChangeLog
import Configuration
import MemoryChangeLog
import Metrics
import Ordering
import PartitionSupervision
import RecordStore
import SQLiteRecordStore
import SyncModel
import SyncWire
import TestClocks
import Testing

/// What passes is tried again; what does not stops with an explanation.
@Suite(.timeLimit(.minutes(5)))
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
            let byHand = try ByHand(parts)
            #expect(try await store.tables(of: 0) == byHand.tables)
            #expect(try await log.piecesOnce(in: 0) == byHand.pieces)
        }
    }

    /// The process is ready as soon as the partition is written again.
    @Test
    func theProcessIsNotReadyWhileWritesFail() async throws {
        try await withLogAndTables { log, tables in
            let parts = randomParts(31, seed: 31, owners: ["abc"])
            try await log.append(Array(parts.prefix(30)))
            let store = WatchedStore(tables) { number throws(RecordStoreError) in
                if number < 2 { throw Self.busy }
            }
            let clock = ManualClock()
            let stage = Stage(log, store, configuration: Self.configuration, clock: clock)
            for _ in 0..<2 {
                await clock.sleeper(for: Self.delay)
                #expect(stage.failures.reason == "ordering of partition 0: busy")
                clock.advance(by: Self.delay)
            }
            await store.until(30)
            // With the next write, the worker has seen the end of the one before.
            try await log.append(Array(parts.suffix(1)))
            await store.until(31)
            #expect(stage.failures.reason == nil)
            try await stage.stop()
            #expect(try await store.tables(of: 0) == ByHand(parts).tables)
        }
    }

    /// A partition of tables that are away is released at once: a rebalance waits for it, with all partitions revoked together.
    @Test(arguments: [24 << 20, 0])
    func endsWithoutAnotherAttemptWhereTheTablesAreAway(overlayBytes: Int) async throws {
        try await withLogAndTables { log, tables in
            var maker = PartMaker()
            try await log.append(maker.creations(3))
            let store = WatchedStore(tables) { _ throws(RecordStoreError) in throw Self.busy }
            let clock = ManualClock()
            let configuration = Self.configuration.with(\.overlayBytes, overlayBytes)
            let stage = Stage(log, store, configuration: configuration, clock: clock)
            await clock.sleeper(for: Self.delay)
            // Its time never comes, and a full overlay never has space again.
            try await stage.stop()
            #expect(store.events.facts.count { if case .committing = $0 { true } else { false } } == 1)
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

    /// What somebody has to mend pauses one partition, which resumes without a restart once it is mended.
    @Test
    func pausesThePartitionWhenTheLogRefusesAndResumesOnceItIsMended() async throws {
        try await withLogAndTables { log, tables in
            var maker = PartMaker()
            let parts = maker.creations(5)
            try await log.append(parts)
            let cause = ChangeLogError(.readOnly, message: "the disk is read-only")
            for _ in 0..<3 { log.failNextAppend(cause) }
            let registry = MetricRegistry()
            let clock = ManualClock()
            let stage = Stage(
                log, WatchedStore(tables), configuration: Self.configuration, metrics: OrderingMetrics(registry),
                clock: clock)
            let paused = registry.gauge(.orderingPaused, [.partition: "0"])
            // The pauses grow.
            for pause in [1, 2, 4] {
                await clock.sleeper(for: .seconds(pause))
                #expect(paused.value == 1)
                #expect(stage.failures.reason == "ordering of partition 0: the disk is read-only")
                clock.advance(by: .seconds(pause))
            }
            await stage.store.until(5)
            await stage.lines.until("The partition resumes: its next record was processed")
            #expect(paused.value == 0)
            try await stage.stop()
            #expect(stage.lines.all.facts.count { $0.contains("the disk is read-only") } == 1)
            #expect(try await stage.store.tables(of: 0) == ByHand(parts).tables)
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
    func pausesAPartitionWhoseTablesHaveAPositionThatChangesDoesNot() async throws {
        try await withLogAndTables { log, tables in
            var maker = PartMaker()
            let parts = maker.creations(4)
            try await log.append(Array(parts[..<2]))
            let uploads = [0: UploadProgress(offset: parts[2].upload.offset, part: 0)]
            let position = StoredPosition(
                state: PartitionState(nextOffset: 3, uploads: uploads, schemaOrdinal: 1), orderedOffset: 0)
            try await tables.commit([
                StoreStep(partition: 0, expected: nil, position: position, rows: [], outcomes: [])
            ])
            let clock = ManualClock()
            let stage = Stage(log, WatchedStore(tables), clock: clock)
            await clock.sleepers(1)
            await stage.lines.until("paused", "the tables are at offset 3, the log holds 0 to 2")
            try await log.append(maker.creations(2, owner: "ghi"), to: 1)
            await stage.store.until(2, in: 1)
            #expect(try await log.range(of: TopicPartition(.ordered, 0)).end == 0)
            // The log is restored.
            try await log.append(Array(parts[2...]))
            clock.advance(by: .seconds(1))
            await stage.store.until(4)
            try await stage.stop()
            #expect(try await stage.store.tables(of: 0).rows.count == 1)
        }
    }
}
