import FanOut
import FanOutLink
import Foundation
import SQLite
import Seeded
import SyncModel
import Testing

/// Damaged files never cause a wrong row or a wrongly drained device.
@Suite(.timeLimit(.minutes(5))) struct DamageTests {
    let owners: [SyncID] = ["abc", "def"]

    /// A world with some pages of rows, in `ordered` alone.
    func filled() throws -> World {
        let world = World()
        for batch in 1...40 {
            let name = String(repeating: "abcdefghij", count: batch % 30)
            try world.upload(
                [.person("p\(batch % 25)", name: name, by: "k\(batch % 6)")], owner: owners[batch % 2],
                batch: Int64(batch))
        }
        return world
    }

    func expectAll(_ world: World, _ service: Service) async throws {
        for owner in owners {
            let rows = try await service.pull(of: owner)
            let isSame = rows.text == world.stream(of: owner).map(world.json).joined(separator: ",")
            try #require(isSame)
            try #require(!rows.hasMore && rows.head == world.head(of: owner))
        }
        for (index, owner) in owners.enumerated() {
            let batch = Int64(39 + index % 2) + (index == 0 ? 1 : -0)
            let kept = try await service.fanOut.keptOutcome(
                of: batch, for: DeviceKey(owner: owner, device: .first), rows: .all, within: .zero)
            #expect((kept != nil) == (Int(batch) % 2 == index))
        }
    }

    /// The bytes of a file that was closed in order.
    func file(of world: World) async throws -> [UInt8] {
        try await withFolder { folder in
            try await withFanOut(world, in: folder) { try await $0.caughtUp(with: world) }
            world.writeTables()
            #expect(!FileManager.default.fileExists(atPath: folder + "/fanout-0.db-wal"))
            return Array(try Data(contentsOf: URL(fileURLWithPath: folder + "/fanout-0.db")))
        }
    }

    /// Changes a file behind the fan-out's back.
    func change(_ path: String, _ sql: String) throws {
        let connection = try Connection(path: path, access: .readWriteCreate())
        do {
            try connection.execute(sql)
        } catch {
            try connection.close()
            throw error
        }
        try connection.close()
    }

    /// Changes a file while no fan-out runs, and runs a closure once one has caught up again.
    func withChangedFile(of world: World, _ sql: String, _ body: (Service) async throws -> Void) async throws {
        try await withFolder { folder in
            try await withFanOut(world, in: folder) { try await $0.caughtUp(with: world) }
            world.writeTables()
            try change(folder + "/fanout-0.db", sql)
            try await withFanOut(world, in: folder) { service in
                try await service.caughtUp(with: world)
                try await body(service)
            }
        }
    }

    /// Starts with a file of these bytes and expects everything to be right.
    private func start(_ world: World, with bytes: [UInt8]) async throws -> Bool {
        try await withFolder { folder in
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            try Data(bytes).write(to: URL(fileURLWithPath: folder + "/fanout-0.db"))
            return try await withFanOut(world, in: folder) { service in
                try await service.caughtUp(with: world)
                try await expectAll(world, service)
                return service.events.hasDamage
            }
        }
    }

    @Test(arguments: 1...4)
    func detectsFlippedBytesUnlessTheyAreHarmless(seed: UInt64) async throws {
        let world = try filled()
        let bytes = try await file(of: world)
        #expect(try await start(world, with: bytes) == false)
        var random = SeededRandom(seed: seed)
        var noticed = 0
        for round in 0..<60 {
            var damaged = bytes
            // The first page, with the schema, gets its share.
            let range = round % 6 == 0 ? 0..<4096 : 0..<bytes.count
            let offset = Int.random(in: range, using: &random)
            damaged[offset] ^= UInt8.random(in: 1...255, using: &random)
            if try await start(world, with: damaged) { noticed += 1 }
        }
        // Most harmless bytes are free space in pages.
        #expect(noticed > 8)
    }

    @Test func detectsTruncationAndFilesThatAreNotDatabases() async throws {
        let world = try filled()
        let bytes = try await file(of: world)
        for count in [bytes.count - 4096, bytes.count / 2, bytes.count - 100, 4096, 100] {
            #expect(try await start(world, with: Array(bytes.prefix(count))))
        }
        #expect(try await start(world, with: []))
        #expect(try await start(world, with: Array(repeating: 0x41, count: 10_000)))
    }

    /// Changes that keep SQLite's structure and the records' own checksums intact, made while the file is closed.
    @Test(arguments: [
        "DELETE FROM stream WHERE time_stamp = (SELECT min(time_stamp) FROM stream)",
        "DELETE FROM outcomes WHERE slot = 3", "DELETE FROM uploads", "DELETE FROM owners WHERE owner_no = 1",
        "UPDATE stream SET time_stamp = time_stamp + 1000000",
        "UPDATE knowledge SET head = head - 1 WHERE device_no = 2",
        "DELETE FROM knowledge WHERE device_no = 1", "UPDATE devices SET count = count + 1",
        "UPDATE meta SET next_offset = next_offset - 1", "UPDATE meta SET time_stamp = 1", "DELETE FROM meta",
        "PRAGMA user_version = 1", "DROP TABLE uploads", "CREATE TABLE more(id)",
        "UPDATE stream SET json = CAST(replace(json, 'person', 'nosrep') AS BLOB)",
    ])
    func detectsChangedRecords(sql: String) async throws {
        let world = try filled()
        try await withChangedFile(of: world, sql) { service in
            try await expectAll(world, service)
            #expect(service.events.hasDamage)
        }
    }
}
