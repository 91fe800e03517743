import ChangeLog
import Configuration
import MemoryChangeLog
import Ordering
import PartitionSupervision
import RecordStore
import SQLiteRecordStore
import SyncModel
import Testing
import Verification

@Suite(.timeLimit(.minutes(5))) struct ReplayTests {
    /// Some records a step, each written before the next is ordered.
    private static let smallSteps = OrderingConfiguration().with(\.stepBytes, 1024).with(\.overlayBytes, 1024)

    /// Replays into tables of another file; returns the reports and the progress.
    private func replay(_ world: World, to name: String) async throws -> (reports: [Report], counted: Int) {
        try await world.withTables(at: "\(world.folder)/\(name)") { store in
            let (counts, continuation) = AsyncStream.makeStream(of: Int.self)
            let source = World.source(world.log) { continuation.yield($0) }
            let reports = try await Replay(source, into: store).run()
            continuation.finish()
            return (reports, await counts.reduce(0, +))
        }
    }

    private func snapshot(_ world: World, of name: String) async throws -> [SnapshotChunk] {
        try await world.withTables(at: "\(world.folder)/\(name)") { store in
            let (pieces, continuation) = AsyncStream.makeStream(of: SnapshotChunk.self)
            try await store.snapshot(of: 0, schemaOrdinal: 1) { continuation.yield($0) }
            continuation.finish()
            return await pieces.reduce(into: []) { $0.append($1) }
        }
    }

    @Test func aReplayWritesTheSameTables() async throws {
        try await World.with { world in
            try await world.appendChanges(200)
            try await world.order()
            let before = try await world.records(of: .ordered)
            let (reports, counted) = try await replay(world, to: "made.db")
            #expect(counted == 200)
            #expect(reports.count == 1)
            #expect(reports.flatMap(\.lines).allSatisfy { $0.finding.isEqual })
            let made = try await snapshot(world, of: "made.db")
            #expect(try await snapshot(world, of: "tables.db") == made)
            #expect(try await world.records(of: .ordered) == before, "a replay writes nothing to the log")
        }
    }

    @Test func aReplayStopsAfterTheLastResultAndOrderingResumesThere() async throws {
        try await World.with { world in
            try await world.appendChanges(10)
            try await world.order()
            try await world.appendChanges(10, from: 10)
            let (_, counted) = try await replay(world, to: "made.db")
            #expect(counted == 10)
            try await world.order(at: world.folder + "/made.db")
            try await world.order()
            let made = try await snapshot(world, of: "made.db")
            let tables = try await snapshot(world, of: "tables.db")
            #expect(made.dropFirst() == tables.dropFirst())
            // Published again is only what the second tables lacked.
            #expect(try await world.records(of: .ordered).count == 30)
        }
    }

    @Test func aReplayResumesAtTheTablesPosition() async throws {
        try await World.with { world in
            try await world.appendChanges(10)
            try await world.order(at: world.folder + "/made.db")
            try await world.appendChanges(10, from: 10)
            // Repeats the first ten results, at later offsets.
            try await world.order()
            let (reports, counted) = try await replay(world, to: "made.db")
            #expect(counted == 10)
            #expect(reports.flatMap(\.lines).allSatisfy { $0.finding.isEqual }, "\(reports)")
            let made = try await snapshot(world, of: "made.db")
            #expect(try await snapshot(world, of: "tables.db") == made)
        }
    }

    /// Ordering worked on tables that were lost, and repeated results at the end of `ordered`.
    @Test func aReplayResumesWhereOrderingHadStarted() async throws {
        try await World.with { world in
            try await world.appendChanges(20)
            try await world.order()
            try await world.withTables(at: "\(world.folder)/made.db") { store in
                let full = WatchedStore(base: store, end: 10)
                let service = OrderingService(
                    StageContext(
                        log: world.log, history: World.history, schemas: KnownSchemas(World.schemas),
                        logger: World.logger),
                    store: full, configuration: Self.smallSteps)
                await #expect(throws: RecordStoreError.self) { try await service.order(0) }
                let begun = try await store.position(of: 0)
                #expect((1...10).contains(begun?.state.nextOffset ?? 0))
                // Until the tables hold every record that has a result.
                #expect(begun?.orderedOffset == 0)
            }
            let (reports, _) = try await replay(world, to: "made.db")
            #expect(reports.flatMap(\.lines).allSatisfy { $0.finding.isEqual }, "\(reports)")
            let made = try await snapshot(world, of: "made.db")
            #expect(try await snapshot(world, of: "tables.db") == made)
        }
    }

    @Test func theTablesOfAReplayGetTheirOffsetInOrderedAtItsEnd() async throws {
        try await World.with { world in
            try await world.appendChanges(40)
            try await world.order()
            try await world.log.removeRecords(of: .ordered, before: .max, floors: [0: 20])
            let written = try await world.withTables(at: "\(world.folder)/made.db") { store in
                let (positions, continuation) = AsyncStream.makeStream(of: StoredPosition.self)
                let watched = WatchedStore(base: store) { continuation.yield($0) }
                let reports = try await Replay(World.source(world.log, Self.smallSteps), into: watched).run()
                continuation.finish()
                #expect(reports.flatMap(\.lines).allSatisfy { $0.finding.isEqual }, "\(reports)")
                return await positions.reduce(into: []) { $0.append($1) }
            }
            #expect(written.count > 2)
            // Until they hold every record that has a result.
            for position in written { #expect(position.orderedOffset == (position.state.nextOffset == 40 ? 40 : 0)) }
            #expect(written.last?.orderedOffset == 40)
            let made = try await snapshot(world, of: "made.db")
            #expect(try await snapshot(world, of: "tables.db") == made)
        }
    }

    @Test func resultsThatRetentionRemovesMeanwhileAreNoDifference() async throws {
        try await World.with { world in
            // More than is read at once.
            let count = 8000
            try await world.appendChanges(count)
            try await world.order()
            let kept = count - 10
            let reports = try await world.withTables(at: "\(world.folder)/made.db") { store in
                let watched = WatchedStore(base: store) { [log = world.log] _ in
                    do {
                        try await log.removeRecords(of: .ordered, before: .max, floors: [0: Int64(kept)])
                    } catch {
                        Issue.record(error)
                    }
                }
                let steps = OrderingConfiguration().with(\.stepBytes, 32 << 10).with(\.overlayBytes, 1024)
                return try await Replay(World.source(world.log, steps), into: watched).run()
            }
            let ordered = try #require(reports.flatMap(\.lines).first { $0.subject == "ordered" })
            guard case .equal(let text) = ordered.finding else {
                Issue.record("\(ordered)")
                return
            }
            #expect(text.contains(" older ones were removed by retention"))
            let made = try await snapshot(world, of: "made.db")
            #expect(try await snapshot(world, of: "tables.db") == made)
        }
    }

    @Test func aReplayOfAnEmptyLogMakesNothing() async throws {
        try await World.with { world in
            let (reports, counted) = try await replay(world, to: "made.db")
            #expect(counted == 0)
            #expect(reports.flatMap(\.lines).allSatisfy { $0.finding.isEqual })
            #expect(try await snapshot(world, of: "made.db") == [.position(StoredPosition())])
        }
    }
}
