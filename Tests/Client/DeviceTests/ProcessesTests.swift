import Foundation
import Fuzzing
import ProgramRun
import Seeded
import Testing
import WeirClient

/// Several processes on one file at once, as an app and its extension, which are killed at any statement.
@Suite struct ProcessesTests {
    private static let schema = """
        tables:
          task:
            columns:
              title: { type: text, nullable: false }
        """

    /// What a row may be, after the commands that were acknowledged and those that were killed.
    private struct Row {
        /// `nil`: it is not there.
        var possible: Set<String?> = [nil]

        mutating func write(_ title: String?, isAcknowledged: Bool) {
            if isAcknowledged { possible = [] }
            possible.insert(title)
        }
    }

    private let folder: TestFolder

    init() throws { folder = try TestFolder() }

    private func run(_ arguments: [String], _ file: String, _ environment: [String: String]) async throws -> CommandRun
    {
        try await CommandRun.run(arguments + ["--file", file], of: .device, in: folder, environment: environment)
    }

    private func succeed(_ arguments: [String], _ file: String, _ environment: [String: String]) async throws {
        let run = try await run(arguments, file, environment)
        #expect(run.code == 0, "\(file), \(arguments): \(run.output)\(run.errors)")
    }

    /// Starts a command, and kills it after so many milliseconds; whether it has ended with success.
    private func start(_ arguments: [String], killedAfter pause: Int?, _ environment: [String: String]) async throws
        -> Bool
    {
        let process = try WatchedProgram(arguments + ["--file", "phone.sqlite"], of: .device, in: folder, environment)
        if let pause {
            // The moment of a kill is any: nothing is waited for.
            try await Task.sleep(for: .milliseconds(pause))
            process.kill()
        }
        return await process.exit() == 0
    }

    private func rows(_ file: String, _ environment: [String: String]) async throws -> [String: String] {
        let run = try await run(["list", "task", "--json"], file, environment)
        try #require(run.code == 0, "\(run.errors)")
        let rows = try JSONSerialization.jsonObject(with: Data(run.output.utf8)) as? [[String: Any]] ?? []
        return Dictionary(
            rows.map { ($0["id"] as? String ?? "", $0["title"] as? String ?? "") }, uniquingKeysWith: { $0 + "," + $1 })
    }

    @Test(arguments: TestLength.seeds(1, long: 6)) func nothingThatWasWrittenIsLost(seed: UInt64) async throws {
        try await EmbeddedServer.run(in: folder, Self.schema) { try await loseNothing(seed, $0) }
    }

    /// As a backup that knows nothing of SQLite copies it: the file and its log, while a process has it open.
    @Test func aFileThatIsCopiedWhileItIsInUseIsAnotherDevice() async throws {
        try await EmbeddedServer.run(in: folder, Self.schema) { url in
            let environment = ["SYNC_SERVER": url, "SYNC_ID": "ada"]
            try await succeed(["put", "task", "sent", "title=sent"], "phone.sqlite", environment)
            try await succeed(["sync"], "phone.sqlite", environment)
            let user = try Database(path: folder.path + "/phone.sqlite")
            try await succeed(["put", "task", "pending", "title=pending"], "phone.sqlite", environment)
            for suffix in ["", "-wal"] {
                try FileManager.default.copyItem(
                    atPath: folder.path + "/phone.sqlite" + suffix, toPath: folder.path + "/copy.sqlite" + suffix)
            }
            user.close()
            let files = ["phone.sqlite", "copy.sqlite"]
            for round in 1...3 {
                for file in files {
                    try await succeed(["put", "task", "\(file) \(round)", "title=\(round)"], file, environment)
                }
                for file in round == 2 ? files.reversed() : files { try await succeed(["sync"], file, environment) }
            }
            try await succeed(["sync"], "phone.sqlite", environment)
            try await succeed(["sync"], "fresh.sqlite", environment)
            let expected = Set(["sent", "pending"] + files.flatMap { file in (1...3).map { "\(file) \($0)" } })
            for file in files + ["fresh.sqlite"] {
                #expect(Set(try await rows(file, environment).keys) == expected)
            }
        }
    }

    /// Writes rows with a connection of its own, each in a transaction, before, during and after a body.
    ///
    /// - Returns: how many, with the ids 0, 1, 2 and so on.
    private func write(_ file: String, during body: () throws -> Void) async throws -> Int {
        let path = folder.path + "/" + file
        let (written, continuation) = AsyncStream.makeStream(of: Int.self, bufferingPolicy: .bufferingNewest(1))
        let writing = Task {
            let database = try Database(path: path)
            defer {
                database.close()
                continuation.finish()
            }
            try database.execute("PRAGMA busy_timeout = 60000")
            var count = 0
            while !Task.isCancelled {
                try database.run("INSERT INTO task (id, title) VALUES (?1, 'meanwhile')", [.text("\(count)")])
                count += 1
                continuation.yield(count)
                await Task.yield()
            }
            return count
        }
        func wait(for count: Int) async -> Int {
            for await reached in written where reached >= count { return reached }
            return count
        }
        let before = await wait(for: 20)
        let result = Result { try body() }
        _ = await wait(for: before + 20)
        writing.cancel()
        let count = try await writing.value
        try result.get()
        return count
    }

    @Test func aFileThatIsCopiedWhileItIsWrittenIsAnotherDevice() async throws {
        try await EmbeddedServer.run(in: folder, Self.schema) { url in
            let environment = ["SYNC_SERVER": url, "SYNC_ID": "ada"]
            let (phone, copy) = ("phone.sqlite", "copy.sqlite")
            try await succeed(["put", "task", "sent", "title=sent"], phone, environment)
            try await succeed(["sync"], phone, environment)
            let count = try await write(phone) {
                let database = try Database(path: folder.path + "/" + phone)
                defer { database.close() }
                try database.execute("VACUUM INTO '\(folder.path)/\(copy)'")
            }
            // Some rows are in both, and pending in both.
            let copied = try await rows(copy, environment).count
            #expect(20..<count ~= copied - 1)
            for (file, id) in [(copy, "of the copy"), (phone, "of the phone")] {
                try await succeed(["put", "task", id, "title=later"], file, environment)
            }
            for file in [copy, phone, copy, "fresh.sqlite"] { try await succeed(["sync"], file, environment) }
            let expected = Set((0..<count).map(String.init)).union(["sent", "of the copy", "of the phone"])
            for file in [copy, phone, "fresh.sqlite"] {
                #expect(Set(try await rows(file, environment).keys) == expected, "\(file)")
            }
        }
    }

    /// As a backup that knows nothing of SQLite copies what is written meanwhile: the file before a checkpoint, and the log after it.
    @Test func aFileThatACopyHasTornIsNotSyncedAndHarmsNoOther() async throws {
        try await EmbeddedServer.run(in: folder, Self.schema) { url in
            let environment = ["SYNC_SERVER": url, "SYNC_ID": "ada"]
            let (phone, torn) = ("phone.sqlite", "torn.sqlite")
            try await succeed(["put", "task", "sent", "title=sent"], phone, environment)
            try await succeed(["sync"], phone, environment)
            let database = try Database(path: folder.path + "/" + phone)
            func copy(_ suffix: String) throws {
                try FileManager.default.copyItem(
                    atPath: "\(folder.path)/\(phone)\(suffix)", toPath: "\(folder.path)/\(torn)\(suffix)")
            }
            func write(_ rows: ClosedRange<Int>) throws {
                try database.execute(
                    """
                    WITH RECURSIVE n (i) AS (SELECT \(rows.lowerBound) UNION ALL SELECT i + 1 FROM n WHERE i < \(rows.upperBound))
                    INSERT INTO task (id, title) SELECT 'row ' || i, printf('%500d', i) FROM n
                    """)
            }
            _ = try database.value("PRAGMA wal_checkpoint(TRUNCATE)")
            try copy("")
            try write(1...2000)
            _ = try database.value("PRAGMA wal_checkpoint(TRUNCATE)")
            try write(2001...2003)
            try copy("-wal")
            database.close()
            for command in [["list", "task"], ["sync"]] {
                let run = try await run(command, torn, environment)
                #expect(run.code == 1 && run.errors.contains("database disk image is malformed"), "\(run.errors)")
            }
            for file in [phone, "fresh.sqlite"] {
                try await succeed(["sync"], file, environment)
                #expect(try await rows(file, environment).count == 2004)
            }
        }
    }

    private func loseNothing(_ seed: UInt64, _ url: String) async throws {
        let environment = ["SYNC_SERVER": url, "SYNC_ID": "ada"]
        let rounds = TestLength.count(12, short: 3, long: 25)
        // Two that write rows of their own, one after the other, and two that sync; the first of them creates the file. A process that
        // watches syncs until it is killed.
        let found = try await withThrowingTaskGroup(of: [String: Row].self) { group in
            for lane in 0..<4 {
                group.addTask {
                    var random = SeededRandom(seed: seed &* 100 &+ UInt64(lane))
                    var rows: [String: Row] = [:]
                    for round in 0..<rounds {
                        // A sync has more steps than a write.
                        let longest = lane < 2 ? 300 : 120
                        let pause = random.chance(60) ? Int.random(in: 0..<longest, using: &random) : nil
                        if lane < 2 {
                            let watches = lane == 1 && random.chance(50)
                            _ = try await start(
                                [watches ? "watch" : "sync"], killedAfter: watches ? pause ?? 500 : pause, environment)
                            continue
                        }
                        let id = "\(lane)-\(Int.random(in: 0..<3, using: &random))"
                        let title = "\(lane).\(round)"
                        let isDeletion = random.chance(20) && rows[id]?.possible.contains(nil) == false
                        let arguments = isDeletion ? ["delete", "task", id] : ["put", "task", id, "title=\(title)"]
                        let isAcknowledged = try await start(arguments, killedAfter: pause, environment)
                        #expect(isAcknowledged || pause != nil, "\(arguments)")
                        rows[id, default: Row()].write(isDeletion ? nil : title, isAcknowledged: isAcknowledged)
                    }
                    return rows
                }
            }
            return try await group.reduce(into: [:]) { $0.merge($1) { first, _ in first } }
        }
        let last = try await run(["sync"], "phone.sqlite", environment)
        #expect(last.code == 0 && last.output.contains("Nothing is pending"), "\(last.output)\(last.errors)")
        let phone = try await rows("phone.sqlite", environment)
        _ = try await run(["sync"], "fresh.sqlite", environment)
        #expect(try await rows("fresh.sqlite", environment) == phone)
        for (id, row) in found {
            #expect(row.possible.contains(phone[id]), "\(id): \(phone[id] ?? "-") of \(row.possible)")
        }
        #expect(Set(phone.keys).isSubset(of: found.keys))
        let database = try Database(path: folder.path + "/phone.sqlite")
        #expect(try database.value("PRAGMA integrity_check")?.string == "ok")
        database.close()
    }
}
