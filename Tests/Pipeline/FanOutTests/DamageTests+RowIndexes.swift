import FanOut
import FanOutLink
import IndexDamage
import SyncModel
import Testing

/// Damage in the indexes by id and by table, which streams have where faces are served.
extension DamageTests {
    /// The file is rebuilt before rows are read by an index that lacks an entry.
    @Test(arguments: ["stream_by_id", "stream_by_table"])
    func aStartRebuildsAStreamWithAnIndexThatLacksARow(index: String) async throws {
        try await withChangedIndexes { world, path in
            let missing = try #require(world.stream(of: owners[1]).last)
            try IndexDamage.keepEntries(
                where: "time_stamp <> \(missing.timeStamp.rawValue)", of: index, in: path)
        } _: { service in
            #expect(service.events.hasDamage)
        }
    }

    private static let otherDefinitions = [
        // Another order of the columns, and an index that no format has.
        "DROP INDEX stream_by_id; CREATE INDEX stream_by_id ON stream(owner_no, row_id, table_no)",
        "CREATE INDEX stream_by_more ON stream(json)",
    ]

    @Test(arguments: otherDefinitions)
    func aStartRebuildsAStreamWithAnIndexThatIsNotOfThisFormat(sql: String) async throws {
        try await withChangedIndexes { _, path in
            try change(path, sql)
        } _: { service in
            #expect(service.events.hasDamage)
        }
    }

    /// As in a file that a fan-out without faces wrote.
    @Test(arguments: ["DROP INDEX stream_by_id; DROP INDEX stream_by_table", "DROP INDEX stream_by_table", "SELECT 1"])
    func aStartMakesTheIndexesThatAStreamLacks(sql: String) async throws {
        try await withChangedIndexes { _, path in
            try change(path, sql)
        } _: { service in
            #expect(!service.events.hasDamage)
        }
    }

    /// Changes a file with indexes while no fan-out runs, and expects each row to be found by them afterwards.
    private func withChangedIndexes(
        _ change: (World, String) throws -> Void, _ body: (Service) async throws -> Void
    ) async throws {
        let world = try filled()
        let withIndexes = { (configuration: inout FanOutConfiguration) in configuration.rowIndexes = true }
        try await withFolder { folder in
            try await withFanOut(world, in: folder, configure: withIndexes) { try await $0.caughtUp(with: world) }
            world.writeTables()
            try change(world, folder + "/fanout-0.db")
            try await withFanOut(world, in: folder, configure: withIndexes) { service in
                try await service.caughtUp(with: world)
                try await body(service)
                try await expectAll(world, service)
                for owner in owners {
                    let rows = world.stream(of: owner)
                    let byTable = try await listed(.changes(above: .zero, upTo: .maximum, table: 0), owner, service)
                    #expect(byTable == rows.map(\.timeStamp))
                    let byID = try await listed(.ids(table: 0, rows.map(\.key.id)), owner, service)
                    #expect(byID == rows.map(\.timeStamp))
                }
            }
        }
    }

    private func listed(
        _ selection: StreamQuery.Selection, _ owner: SyncID, _ service: Service
    ) async throws -> [TimeStamp] {
        let query = StreamQuery(of: owner, selection, limit: 1000)
        let answer = try #require(try await service.fanOut.rows(query, within: .zero))
        #expect(answer.rest == nil)
        return answer.rows.map(\.timeStamp)
    }
}
