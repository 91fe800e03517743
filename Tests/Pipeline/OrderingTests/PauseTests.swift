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

/// A message that cannot be ordered pauses its partition; what came before it is ordered, and so are the others.
@Suite(.timeLimit(.minutes(5)))
struct PauseTests {
    enum Obstacle: CaseIterable {
        case unreadable, unknownSchema, unknownRules, otherEpoch, tooManyValues

        func record(_ part: ChangePart) -> [UInt8] {
            var part = part
            switch self {
            case .unreadable: return [0xFF, 0xFF]
            case .unknownSchema: part.schema = String(repeating: "ab", count: 16)
            case .unknownRules: part.rules = 99
            case .otherEpoch: part.epoch = "e2"
            case .tooManyValues: part.changes = [.edit("bad", ["1", "\"x\"", "\"y\""])]
            }
            return part.encode(naming: Fixture.newest)
        }

        var explanation: String {
            switch self {
            case .unreadable: "the record cannot be read"
            case .unknownSchema: "which is not known here"
            case .unknownRules: "the record needs rules version 99, this worker knows \(RulesVersion.current)"
            case .otherEpoch: "the record has epoch e2"
            case .tooManyValues: "the record breaks the contract of changes"
            }
        }
    }

    @Test(arguments: Obstacle.allCases, [1, 1 << 20])
    func pausesBeforeAMessageItCannotOrder(_ obstacle: Obstacle, stepBytes: Int) async throws {
        try await withLogAndTables { log, tables in
            var maker = PartMaker()
            let parts = maker.creations(3)
            try await log.append(parts)
            let producer = try await log.producer()
            let value = obstacle.record(maker.part([.edit("bad", ["1"])], batch: 4))
            try await producer.append([NewRecord(to: TopicPartition(.changes, 0), value: value)])
            await producer.close()
            try await log.append([maker.part([.edit("behind", ["1"])], batch: 5)])
            let others = maker.creations(4, owner: "ghi")
            let clock = ManualClock()
            let stage = Stage(
                log, WatchedStore(tables), configuration: OrderingConfiguration().with(\.stepBytes, stepBytes),
                clock: clock)
            await stage.lines.until("paused", "changes[0] offset 3", obstacle.explanation)

            // The other partition goes on.
            try await log.append(others, to: 1)
            await stage.store.until(4, in: 1)
            try await stage.stop()
            let byHand = try ByHand(parts)
            #expect(try await log.piecesOnce(in: 0) == byHand.pieces)
            #expect(try await stage.store.tables(of: 0) == byHand.tables)
            #expect(stage.clock.sleeps.isEmpty)
        }
    }

    /// Also a worker that starts behind such a record, which is the last one that the tables have.
    @Test(arguments: [Obstacle.unreadable, .otherEpoch, .tooManyValues], [1, 1 << 20])
    func passesARecordThatIsLeftOut(_ obstacle: Obstacle, stepBytes: Int) async throws {
        try await withLogAndTables { log, tables in
            var maker = PartMaker()
            var parts = maker.creations(2)
            try await log.append(parts)
            let producer = try await log.producer()
            let invalid = obstacle.record(maker.part([.edit("bad", ["1"])], batch: 9))
            try await producer.append([NewRecord(to: TopicPartition(.changes, 0), value: invalid)])
            await producer.close()
            let clock = ManualClock()
            let known = KnownSchemas(Fixture.schemas)
            let configuration = OrderingConfiguration().with(\.stepBytes, stepBytes)
            let stage = Stage(
                log, WatchedStore(tables), configuration: configuration, schemas: known, clock: clock)
            await clock.sleeper(for: .seconds(1))
            var skipped = SkippedRecords()
            skipped.append(
                SkippedRecord(.init(.changes, 0, offset: 2), reason: "produced by hand", schemaVersions: 2), at: 1)
            known.learn(Fixture.schemas, leavingOut: skipped)
            clock.advance(by: .seconds(1))
            await stage.store.until(3)
            await stage.lines.until("The partition resumes")
            try await stage.stop()

            parts.append(maker.part([.edit("behind", ["1"])], batch: 5))
            try await log.append(parts.suffix(1))
            let next = Stage(
                log, WatchedStore(tables), schemas: KnownSchemas(Fixture.schemas, leavingOut: skipped))
            await next.store.until(4)
            try await next.stop()
            #expect(try await log.piecesOnce(in: 0).count == parts.count)
            let rows = try await tables.rows(
                parts.flatMap(\.rowsTouched) + [.init(table: 0, owner: parts[0].owner, id: RowID(unchecked: "bad"))],
                in: 0, schemaOrdinal: 2)
            #expect(Set(rows.map(\.key)) == Set(parts.flatMap(\.rowsTouched)))
        }
    }

    @Test(arguments: Obstacle.allCases)
    func onlyWhatNoWorkerCanOrderMayBeLeftOut(_ obstacle: Obstacle) throws {
        var maker = PartMaker()
        let part = maker.part([.edit("a", ["1"])], batch: 1)
        func permanent(_ value: [UInt8]) -> OrderingError? {
            .permanent(
                LogRecord(offset: 7, time: 1, key: [], value: value), of: 3, history: Fixture.history,
                schemas: Fixture.schemas)
        }
        #expect(permanent(part.encode(naming: Fixture.newest)) == nil)
        let found = permanent(obstacle.record(part)).map(\.description)
        switch obstacle {
        case .unreadable, .otherEpoch, .tooManyValues:
            #expect(found?.hasPrefix("changes[3] offset 7: ") == true && found?.contains(obstacle.explanation) == true)
        case .unknownSchema, .unknownRules: #expect(found == nil)
        }
    }

    @Test
    func goesOnWithAWorkerThatKnowsTheSchema() async throws {
        try await withLogAndTables { log, tables in
            var maker = PartMaker()
            let parts = [
                maker.part([.edit("x", ["1"])], batch: 1), maker.part([.edit("x", ["2"])], batch: 2, schema: 2),
            ]
            try await log.append(parts)
            let old = Stage(log, WatchedStore(tables), schemas: KnownSchemas(Fixture.firstSchema))
            await old.lines.until("paused", "offset 1")
            try await old.stop()
            let new = Stage(log, WatchedStore(tables))
            await new.store.until(2)
            try await new.stop()
            let byHand = try ByHand(parts)
            #expect(try await log.records(of: TopicPartition(.ordered, 0)).map(\.value) == byHand.pieces)
            #expect(try await new.store.tables(of: 0) == byHand.tables)
        }
    }

    @Test(arguments: [1, 1 << 20])
    func goesOnWhenTheSchemaIsKnownWithoutWaitingForTime(stepBytes: Int) async throws {
        try await withLogAndTables { log, tables in
            var maker = PartMaker()
            let parts = [
                maker.part([.edit("x", ["1"])], batch: 1), maker.part([.edit("x", ["2"])], batch: 2, schema: 2),
                maker.part([.edit("x", ["3"])], batch: 3),
            ]
            try await log.append(parts)
            let known = KnownSchemas(Fixture.firstSchema)
            let registry = MetricRegistry()
            let stage = Stage(
                log, WatchedStore(tables), configuration: OrderingConfiguration().with(\.stepBytes, stepBytes),
                schemas: known,
                metrics: OrderingMetrics(registry))
            let paused = registry.gauge(.orderingPaused, [.partition: "0"])
            await stage.lines.until("paused until its schema version is known", "changes[0] offset 1")
            #expect(paused.value == 1)
            // The member works on its other partition meanwhile.
            try await log.append(maker.creations(2, owner: "ghi"), to: 1)
            await stage.store.until(2, in: 1)
            known.learn(Fixture.schemas)
            await stage.store.until(3)
            #expect(paused.value == 0)
            try await stage.stop()
            #expect(stage.clock.sleeps.isEmpty)
            let byHand = try ByHand(parts)
            #expect(try await log.records(of: TopicPartition(.ordered, 0)).map(\.value) == byHand.pieces)
            #expect(try await stage.store.tables(of: 0) == byHand.tables)
        }
    }

    @Test
    func waitsForTheSchemaThatAnotherWorkerHasReached() async throws {
        try await withLogAndTables { log, tables in
            var maker = PartMaker()
            let parts = [
                maker.part([.edit("x", ["1"])], batch: 1, schema: 2), maker.part([.edit("x", ["2"])], batch: 2),
            ]
            try await log.append([parts[0]])
            let ahead = Stage(log, WatchedStore(tables))
            await ahead.store.until(1)
            try await ahead.stop()
            // This message names the version that the worker knows, and its row is of the other.
            try await log.append([parts[1]])
            let known = KnownSchemas(Fixture.firstSchema)
            let behind = Stage(log, WatchedStore(tables), schemas: known)
            await behind.lines.until("paused until its schema version is known", "reached schema version 2")
            known.learn(Fixture.schemas)
            await behind.store.until(2)
            try await behind.stop()
            #expect(try await behind.store.tables(of: 0) == (try ByHand(parts)).tables)
        }
    }

    /// What is published stays in `ordered`, so attempts that fail again must not publish much.
    @Test
    func aPausedPartitionPublishesOnePartAtEachAttempt() async throws {
        try await withLogAndTables { log, tables in
            var maker = PartMaker()
            let parts = maker.creations(30)
            try await log.append(parts)
            let key = parts[0].rowsTouched[0]
            let store = WatchedStore(tables) { number throws(RecordStoreError) in
                if number < 4 { throw RecordStoreError(.refusedRow(key), message: "table note refused the row r0") }
            }
            let clock = ManualClock()
            let stage = Stage(log, store, clock: clock)
            let ordered = TopicPartition(.ordered, 0)
            await clock.sleeper(for: .seconds(1))
            let first = try await log.range(of: ordered).end
            for (number, pause) in [1, 2, 4].enumerated() {
                clock.advance(by: .seconds(pause))
                await clock.sleeper(for: .seconds(pause * 2))
                #expect(try await log.range(of: ordered).end == first + Int64(number) + 1)
            }
            clock.advance(by: .seconds(8))
            await store.until(30)
            try await stage.stop()
            #expect(try await log.piecesOnce(in: 0) == ByHand(parts).pieces)
            #expect(try await stage.store.tables(of: 0) == ByHand(parts).tables)
        }
    }

    @Test
    func pausesThePartitionWhoseRowTheTablesRefuse() async throws {
        try await withLogAndTables { log, tables in
            var maker = PartMaker()
            let parts = maker.creations(1)
            try await log.append(parts)
            let key = parts[0].rowsTouched[0]
            let store = WatchedStore(tables) { number throws(RecordStoreError) in
                if number == 0 { throw RecordStoreError(.refusedRow(key), message: "table note refused the row r0") }
            }
            let clock = ManualClock()
            let stage = Stage(log, store, clock: clock)
            await stage.lines.until("paused", "table note refused the row r0")
            try await log.append(maker.creations(2, owner: "ghi"), to: 1)
            await store.until(2, in: 1)
            #expect(try await store.position(of: 0) == nil)
            await clock.sleeper(for: .seconds(1))
            // The operator has mended the table.
            clock.advance(by: .seconds(1))
            await store.until(1)
            try await stage.stop()
        }
    }
}
