import ChangeLog
import RecordStore
import SQLiteRecordStore
import SyncModel
import Testing
import Verification

@Suite(.timeLimit(.minutes(1))) struct ReplayTests {
    /// Replays into tables of another file; the reports and how many messages were counted.
    private func replay(_ world: World, to name: String) async throws -> (reports: [Report], counted: Int) {
        try await world.withTables(at: "\(world.folder)/\(name)") { store in
            let (counts, continuation) = AsyncStream.makeStream(of: Int.self)
            let reports = try await Replay(
                log: world.log, into: store, history: World.history, schemas: World.schemas, logger: World.logger
            ) { continuation.yield($0) }.run()
            continuation.finish()
            return (reports, await counts.reduce(0, +))
        }
    }

    private func snapshot(_ world: World, of name: String) async throws -> [SnapshotPiece] {
        try await world.withTables(at: "\(world.folder)/\(name)") { store in
            let (pieces, continuation) = AsyncStream.makeStream(of: SnapshotPiece.self)
            try await store.snapshot(of: 0, schemaOrdinal: 1) { continuation.yield($0) }
            continuation.finish()
            return await pieces.reduce(into: []) { $0.append($1) }
        }
    }

    @Test func aReplayMakesTheSameTables() async throws {
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

    @Test func aReplayStopsWhereResultsEndAndOrderingGoesOn() async throws {
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
            // Nothing that was published before was published again, but what the second tables lacked.
            #expect(try await world.records(of: .ordered).count == 30)
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
