import FanOut
import FanOutLink
import SyncModel
import Testing

/// Damage in the index by time, which only owners with many creating devices have.
extension DamageTests {
    private func filledByMany() throws -> World {
        let world = World()
        for round in 0..<2 {
            try world.upload((0..<150).map { .person("p\(round)-\($0)", by: "k\($0)", index: $0) })
        }
        return world
    }

    /// Found by a pull that scans it: an entry of a device's newest row, a search, and the row of an entry.
    @Test(arguments: [
        "DELETE FROM time_index WHERE time_stamp = (SELECT max(time_stamp) FROM time_index)",
        "DELETE FROM time_index WHERE time_stamp % 2 = 0", "DELETE FROM time_index",
        "UPDATE time_index SET device_no = device_no - 1", "UPDATE time_index SET checksum = checksum + 1",
        "UPDATE time_index SET owner_no = 2", "DROP TABLE time_index",
        "DELETE FROM stream WHERE device_no = 100",
    ])
    func rebuildsWhenAPullFindsDamageOfTheIndexByTime(sql: String) async throws {
        let world = try filledByMany()
        let checkHeads = { (configuration: inout FanOutConfiguration) in configuration.check = .heads }
        try await withFanOut(world, configure: checkHeads) { service in
            try await service.caughtUp(with: world)
            world.writeTables()
            try change(service.file(), sql)
            await #expect(throws: FanOutError.self) { try await service.pull() }
            await service.events.ready(2)
            try await service.caughtUp(with: world)
            let rows = try await service.pull()
            let isSame = rows.text == world.stream(of: "abc").map(world.json).joined(separator: ",")
            #expect(isSame && !rows.hasMore)
        }
    }

    @Test(arguments: [
        "DELETE FROM time_index WHERE time_stamp = (SELECT min(time_stamp) FROM time_index)",
        "UPDATE knowledge SET indexed_from = indexed_from + 1 WHERE device_no = 100",
    ])
    func aStartFindsDamageOfTheIndexByTime(sql: String) async throws {
        try await withChangedFile(of: try filledByMany(), sql) { service in
            #expect(service.events.hasDamage)
            let rows = try await service.pull()
            #expect(rows.count == 300)
        }
    }

    /// A row written again leaves the index at its former timeStamp.
    @Test func aWriteFindsThatTheIndexByTimeLacksTheFormerRow() async throws {
        let world = try filledByMany()
        try await withFanOut(world) { service in
            try await service.caughtUp(with: world)
            world.writeTables()
            try change(service.file(), "DELETE FROM time_index WHERE device_no = 100")
            try world.upload([.person("p0-99", name: "B", by: "k99")])
            await service.events.ready(2)
            try await service.caughtUp(with: world)
            let rows = try await service.pull()
            #expect(rows.count == 300 && rows.head == world.head(of: "abc"))
        }
    }
}
