import ChangeLog
import FanOut
import FanOutLink
import Foundation
import SQLite
import Seeded
import SyncModel
import TestClocks
import Testing

/// Damage under a running fan-out.
extension DamageTests {
    /// Damage while the file is served, found by a pull.
    @Test(arguments: [
        "UPDATE stream SET json = CAST(replace(json, 'abcdefghij', 'abcdefghiJ') AS BLOB)",
        "UPDATE stream SET checksum = checksum + 1",
        "DELETE FROM stream WHERE time_stamp = (SELECT max(time_stamp) FROM stream)",
        "DELETE FROM owners", "UPDATE owners SET head = head - 1", "DROP TABLE stream",
    ])
    func rebuildsWhileRunningWhenAPullFindsDamage(sql: String) async throws {
        let world = try filled()
        let checkHeads = { (configuration: inout FanOutConfiguration) in configuration.check = .heads }
        try await withFanOut(world, configure: checkHeads) { service in
            try await service.caughtUp(with: world)
            world.writeTables()
            // An idle pull in between reads nothing from the file.
            let idle = OwnerPull(owner: "abc", knowledge: OwnerKnowledge(floor: world.head(of: "abc")))
            try change(service.file(), sql)
            #expect(service.fanOut.idlePage(idle) != nil)
            var failures = 0
            for owner in owners {
                do {
                    let rows = try await service.pull(of: owner)
                    let isSame = rows.text == world.stream(of: owner).map(world.json).joined(separator: ",")
                    #expect(isSame)
                } catch FanOutError.notReady {
                    failures += 1
                }
            }
            #expect(failures > 0)
            await service.events.ready(2)
            try await service.caughtUp(with: world)
            try await expectAll(world, service)
            try world.upload([.person("after")])
            try await service.caughtUp(with: world)
            try await expectAll(world, service)
        }
    }

    /// A table is missing; the replaced version of the next row is missing; another row is at its position.
    @Test(arguments: [
        "DROP TABLE knowledge", "DELETE FROM stream WHERE row_id = CAST('p7' AS BLOB)",
        "UPDATE stream SET row_id = CAST('p9' AS BLOB) WHERE row_id = CAST('p7' AS BLOB)",
    ])
    func rebuildsWhileRunningWhenAWriteFindsDamage(sql: String) async throws {
        let world = try filled()
        try await withFanOut(world) { service in
            try await service.caughtUp(with: world)
            world.writeTables()
            try change(service.file(), sql)
            try world.upload([.person("p7", by: "k3")], owner: owners[1])
            await service.events.ready(2)
            try await service.caughtUp(with: world)
            try await expectAll(world, service)
        }
    }

    /// The row of an answer is missing at its locator and everywhere else, or is another row.
    @Test(arguments: [
        "DELETE FROM stream WHERE row_id = CAST('p7' AS BLOB)",
        "UPDATE stream SET row_id = CAST('p9' AS BLOB) WHERE row_id = CAST('p7' AS BLOB)",
        "UPDATE stream SET json = CAST(replace(json, 'abcdefghij', 'abcdefghiJ') AS BLOB)", "DELETE FROM knowledge",
    ])
    func rebuildsWhileRunningWhenAnOutcomeFindsDamage(sql: String) async throws {
        let world = try filled()
        let conflict = try world.upload(
            [.person("p7", by: "k3", base: .zero, ifBase: true)], owner: owners[1], device: .second, batch: 1)
        try await withFanOut(world) { service in
            try await service.caughtUp(with: world)
            world.writeTables()
            let row = try #require(world.stream(of: owners[1]).first { $0.key.id == "p7" })
            let shown = [0: Array(world.json(row).utf8)]
            #expect(try await service.fanOut.outcome(of: conflict, rows: .all, within: .seconds(60)).rows == shown)
            try change(service.file(), sql)
            await #expect(throws: FanOutError.self) {
                try await service.fanOut.outcome(of: conflict, rows: .all, within: .seconds(60))
            }
            await service.events.ready(2)
            try await service.caughtUp(with: world)
            #expect(
                try await service.fanOut.keptOutcome(of: 1, for: conflict.key, rows: .all, within: .zero)?.rows == shown
            )
            try await expectAll(world, service)
        }
    }

    /// A rebuilt stream starts at the tables' position, possibly behind results that were reported.
    ///
    /// Their rows are not there yet, and nothing is damaged.
    @Test func aStreamBehindReportedResultsIsNotDamaged() async throws {
        let world = try filled()
        world.writeTables()
        try world.upload([.person("fresh", by: "k7")])
        let conflict = try world.upload(
            [.person("fresh", by: "k8", base: .zero, ifBase: true)], device: .second, batch: 1)
        let clock = ManualClock()
        try await withFanOut(world, clock: clock) { service in
            try await service.caughtUp(with: world)
            let outcome = try await service.fanOut.outcome(of: conflict, rows: .all, within: .zero)
            #expect(outcome.results.map(\.status) == [.conflict] && outcome.rows.count == 1)
            world.log.fail(with: [ChangeLogError(.inputOutput, message: "away", isRetriable: true)])
            try change(service.file(), "UPDATE stream SET checksum = checksum + 1")
            await #expect(throws: FanOutError.self) { try await service.pull(of: owners[0]) }
            await clock.sleepers(1)
            for _ in 0..<3 {
                let error = await #expect(throws: FanOutError.self) {
                    try await service.fanOut.outcome(of: conflict, rows: .all, within: .zero)
                }
                guard case .notReady? = error else {
                    Issue.record("\(String(describing: error))")
                    break
                }
            }
            clock.advance(by: .seconds(60))
            await service.events.ready(2)
            try await service.caughtUp(with: world)
            #expect(try await service.fanOut.outcome(of: conflict, rows: .all, within: .zero) == outcome)
            #expect(service.events.events.count(where: \.isDamageOfAFile) == 1)
        }
    }

    /// A file that is damaged again after each rebuild: rebuilds have pauses.
    @Test func repeatedDamageIsRebuiltWithPauses() async throws {
        let world = try filled()
        world.writeTables()
        let clock = ManualClock()
        let checkHeads = { (configuration: inout FanOutConfiguration) in configuration.check = .heads }
        try await withFanOut(world, clock: clock, configure: checkHeads) { service in
            try await service.caughtUp(with: world)
            for round in 1...2 {
                try change(service.file(), "UPDATE stream SET checksum = checksum + 1")
                await #expect(throws: FanOutError.self) { try await service.pull(of: owners[0]) }
                if round == 2 {
                    await clock.sleepers(1)
                    #expect(service.events.events.count(where: \.isReady) == 2)
                    clock.advance(by: .seconds(60))
                }
                await service.events.ready(round + 1)
                try await service.caughtUp(with: world)
            }
            try await expectAll(world, service)
        }
    }

    /// What happens to the files while they are open: the names go, or the bytes change where they are.
    enum Loss: CaseIterable, Sendable {
        case deleted, database, log, replaced

        func happen(to path: String) throws {
            let files = FileManager.default
            switch self {
            case .deleted: for end in ["", "-wal", "-shm"] { try files.removeItem(atPath: path + end) }
            case .database: try files.removeItem(atPath: path)
            case .log: try files.removeItem(atPath: path + "-wal")
            case .replaced:
                // Another file with the same bytes, as a copy that was put back.
                let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
                try files.removeItem(atPath: path)
                try bytes.write(to: URL(fileURLWithPath: path))
            }
        }
    }

    /// A process with a deleted file open continues to use it, and everything written to it is lost with the process.
    @Test(arguments: Loss.allCases)
    func rebuildsWithTheNextResultWhenOpenFilesAreDeleted(loss: Loss) async throws {
        let world = try filled()
        try await withFolder { folder in
            try await withFanOut(world, in: folder) { service in
                try await service.caughtUp(with: world)
                try await expectAll(world, service)
                world.writeTables()
                try loss.happen(to: service.file())
                try world.upload([.person("after", by: "k3")], owner: owners[1])
                world.writeTables()
                try await service.caughtUp(with: world)
                try #require(service.events.hasDamageOfAFile)
                try await expectAll(world, service)
            }
            // The rebuilt file is in place: the next start does not rebuild it.
            try await withFanOut(world, in: folder) { service in
                try await service.caughtUp(with: world)
                try await expectAll(world, service)
                #expect(!service.events.hasDamage)
            }
        }
    }

    /// A changed key in the B-tree makes a search skip rows and end at other, undamaged ones.
    @Test func detectsASearchMisledByADamagedKey() async throws {
        let world = World()
        for batch in 0..<10 {
            let name = String(repeating: "n", count: 300)
            let changes = (0..<40).map { Change.person("p\(batch)-\($0)", name: name, index: $0) }
            try world.upload(changes, batch: Int64(batch + 1))
        }
        world.writeTables()
        var bytes = try await file(of: world)
        let separator = try Self.moveSeparator(in: &bytes)
        try await withFolder { folder in
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            try Data(bytes).write(to: URL(fileURLWithPath: folder + "/fanout-0.db"))
            let checkHeads = { (configuration: inout FanOutConfiguration) in configuration.check = .heads }
            try await withFanOut(world, in: folder, configure: checkHeads) { service in
                let floor = TimeStamp(separator - 3)
                let lacking = world.stream(of: "abc").filter { $0.timeStamp > floor }
                try await #require(throws: FanOutError.self) {
                    _ = try await service.pull(OwnerKnowledge(floor: floor))
                }
                await service.events.ready(2)
                let rows = try await service.pull(OwnerKnowledge(floor: floor))
                let isSame = rows.text == lacking.map(world.json).joined(separator: ",")
                #expect(isSame)
            }
        }
    }

    /// Sets the timeStamp of a row in the root of the stream's B-tree, whose key separates the pages below, to the
    /// least.
    ///
    /// - Returns: the timeStamp that it had.
    private static func moveSeparator(in bytes: inout [UInt8]) throws -> Int64 {
        let path = FileManager.default.temporaryDirectory.path + "/fanout-root-\(UUID().uuidString)"
        try Data(bytes).write(to: URL(fileURLWithPath: path))
        let connection = try Connection(path: path, access: .readOnly)
        var query = try connection.prepare("SELECT rootpage FROM sqlite_schema WHERE name = 'stream'")
        try #require(try query.step())
        let page = (Int(try query.integer(at: 0)) - 1) * 4096
        _ = consume query
        try connection.close()
        try FileManager.default.removeItem(atPath: path)
        func number(at place: Int) -> Int { Int(bytes[place]) << 8 | Int(bytes[place + 1]) }
        // The page's type, its number of rows, and the offset of the last one after the child page's number.
        try #require(bytes[page] == 2)
        let count = number(at: page + 3)
        let row = page + number(at: page + 12 + 2 * (count - 1)) + 4
        // Its size in two bytes; its header, whose first columns are numbers that are 1 and a number of two bytes.
        let header = row + 2
        try #require(bytes[row] >= 0x80 && Array(bytes[header + 1...header + 3]) == [9, 9, 2])
        let place = header + Int(bytes[header])
        let timeStamp = number(at: place)
        (bytes[place], bytes[place + 1]) = (0, 100)
        return Int64(timeStamp)
    }

    /// Bytes change in the database and in its log while pulls and results go on.
    ///
    /// The seed decides positions and values. Every page is correct or refused, and finally the fan-out serves
    /// everything.
    @Test(arguments: 1...4)
    func sendsNoWrongRowWhileBytesOfTheFileChange(seed: UInt64) async throws {
        var random = SeededRandom(seed: seed)
        var (noticed, refused) = (0, 0)
        for round in 0..<12 {
            let world = try filled()
            try await withFolder { folder in
                // Half of the rounds have everything in the database itself, as after an orderly end.
                if round % 2 == 0 { try await withFanOut(world, in: folder) { try await $0.caughtUp(with: world) } }
                world.writeTables()
                try await withFanOut(world, in: folder) { service in
                    try await service.caughtUp(with: world)
                    for number in 0..<3 {
                        await service.events.servesAgain()
                        try Self.damage(service.file(), &random, cuts: round % 4 == 3)
                        try world.upload(
                            [.person("p\(round + number)", by: "k\(number)")], owner: owners[number % 2])
                        for owner in owners where try await !isAnswered(world, service, owner) { refused += 1 }
                    }
                    world.writeTables()
                    try await service.caughtUp(with: world)
                    for owner in owners {
                        while try await !isAnswered(world, service, owner) {
                            // The last refusal may not have been reported yet.
                            await Task.yield()
                            await service.events.servesAgain()
                        }
                    }
                    if service.events.hasDamageOfAFile { noticed += 1 }
                }
            }
        }
        #expect(noticed > 8 && refused > 8, "noticed \(noticed), refused \(refused)")
    }

    /// Overwrites some runs of bytes of a file and of its log, or cuts them.
    private static func damage(_ path: String, _ random: inout SeededRandom, cuts: Bool) throws {
        for name in [path, path + "-wal"] {
            // A file that was just found damaged may already be deleted.
            guard let handle = FileHandle(forUpdatingAtPath: name) else { continue }
            let size = Int(try handle.seekToEnd())
            guard size > 0 else {
                try handle.close()
                continue
            }
            if cuts {
                try handle.truncate(atOffset: UInt64(Int.random(in: 0..<size, using: &random)))
            } else {
                for _ in 0..<8 {
                    try handle.seek(toOffset: UInt64(Int.random(in: 0..<size, using: &random)))
                    let count = Int.random(in: 1...64, using: &random)
                    try handle.write(contentsOf: (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) })
                }
            }
            try handle.close()
        }
    }

    /// Whether an owner's pull returns all rows, which must be correct.
    private func isAnswered(_ world: World, _ service: Service, _ owner: SyncID) async throws -> Bool {
        let rows: OwnerRows
        do {
            rows = try await service.pull(of: owner)
        } catch FanOutError.notReady {
            return false
        }
        // The newest result may not have arrived yet.
        let stream = world.stream(of: owner)
        let past = stream.filter { $0.timeStamp <= rows.head }
        let isWhole = past.count == stream.count
        let isSame = rows.text == past.map(world.json).joined(separator: ",")
        #expect(isSame || !isWhole, "a page of \(owner) is wrong")
        #expect(!rows.hasMore)
        return isWhole
    }
}
