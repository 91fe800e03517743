import AsyncPrimitives
import ChangeLog
import Foundation
import SQLite
import Seeded
import Testing

/// `weir verify` and `weir replay` on folders that a real process made.
@Suite(.timeLimit(.minutes(5))) struct VerifyTests {
    let folder: TestFolder

    init() throws { folder = try TestFolder() }

    var data: String { folder.path + "/data" }

    func verify() async throws -> CommandRun {
        try await CommandRun.run("verify", "--data", data, in: folder)
    }

    /// Runs SQL on a file of the data folder.
    private func execute(_ sql: String, on name: String) async throws {
        let writer = try await DatabaseWriter.open(path: "\(data)/\(name)")
        let result = await Result.capturing {
            try await writer.perform { connection in try connection.execute(sql) }
        }
        try await writer.close()
        try result.get()
    }

    func integer(_ sql: String, on name: String) async throws -> Int64 {
        let reader = try await DatabaseReaderPool.open(path: "\(data)/\(name)", count: 1)
        let result = await Result.capturing {
            try await reader.read { connection in
                var statement = try connection.prepare(sql)
                return try statement.step() ? try statement.integer(at: 0) : -1
            }
        }
        try await reader.close()
        return try result.get()
    }

    /// The file of partition 0 or 1 whose table has the most rows: owners fall into either.
    func busiest(_ count: (Int) -> (sql: String, file: String)) async throws -> Int {
        var counts: [Int64] = []
        for partition in 0..<2 {
            let (sql, file) = count(partition)
            counts.append(try await integer(sql, on: file))
        }
        return counts[0] >= counts[1] ? 0 : 1
    }

    /// Has devices of three owners write rows with conflicts, and stops the process.
    private func fill(seed: UInt64, rounds: Int = 12) async throws -> [TestDevice] {
        let weir = try await TestServer.start(in: folder)
        let devices = try await play(weir, seed: seed, rounds: rounds)
        #expect(await weir.stop() == 0)
        return devices
    }

    func play(_ weir: WeirProcess, seed: UInt64, rounds: Int) async throws -> [TestDevice] {
        try await ConflictingWrites.play(port: weir.port, seed: seed, rounds: rounds)
    }

    // MARK: Verifying

    @Test func filesOfAStoppedProcessAreEqual() async throws {
        _ = try await fill(seed: 1)
        let run = try await verify()
        #expect(run.code == 0, "\(run.output)\(run.errors)")
        #expect(run.output.contains("\nEqual: "))
        let lines = run.output.split(separator: "\n")
        for subject in ["position", "tables", "stream", "ordered"] {
            #expect(lines.count { $0.hasPrefix("  \(subject)") && $0.contains(" equal: ") } == 2)
        }
        #expect(run.output.contains("  changes   equal: "))
        #expect(!FileManager.default.fileExists(atPath: data + "/verify-tables.db"))
        // Nothing was changed: the process starts again.
        let weir = try await TestServer.start(in: folder)
        #expect(await weir.stop() == 0)
        #expect(try await verify().code == 0)
    }

    @Test func filesOfAKilledProcessAreEqual() async throws {
        for seed in UInt64(1)...3 {
            let weir = try await TestServer.start(in: folder)
            let device = try await play(weir, seed: seed, rounds: 6)[0]
            // Acknowledged, but its outcome is not awaited.
            let changes = (0..<200).map { TestDevice.change("k\($0)", ["name": JSON("\(seed)")]).value }
            let accepted = try await device.client.post(
                "/v1/upload",
                ["knowledgeId": JSON("killed"), "batch": JSON(Int(seed)), "changes": JSON(changes)])
            #expect(accepted.status == 202)
            _ = await weir.kill()
            let run = try await verify()
            #expect(run.code == 0, "\(run.output)\(run.errors)")
        }
    }

    @Test func aRunningProcessIsVerifiedByACopyOfItsFolder() async throws {
        let weir = try await TestServer.start(in: folder)
        var devices = try await play(weir, seed: 11, rounds: 8)
        let scratch = folder.path + "/missing/scratch"
        let copying = Task { [folder, data] in
            try await CommandRun.run("verify", "--data", data, "--copy", "--scratch", scratch, in: folder)
        }
        for round in 0..<20 {
            _ = try await devices[0].sync([TestDevice.change("busy\(round % 3)", ["name": JSON("n\(round)")])])
        }
        let run = try await copying.value
        #expect(run.code == 0, "\(run.output)\(run.errors)")
        #expect(run.output.contains("  stream    equal: "))
        #expect(try FileManager.default.contentsOfDirectory(atPath: scratch).isEmpty)
        #expect(await weir.stop() == 0)
        try await execute("UPDATE person SET name = 'flipped'", on: "tables.db")
        let flipped = try await CommandRun.run("verify", "--data", data, "--copy", in: folder)
        #expect(flipped.code == 1)
        #expect(flipped.output.contains("found \"flipped\""))
    }

    @Test func theScratchFolderIsCreatedWithItsParents() async throws {
        _ = try await fill(seed: 13, rounds: 2)
        let scratch = folder.path + "/missing/parent/scratch"
        let run = try await CommandRun.run("verify", "--data", data, "--scratch", scratch, in: folder)
        #expect(run.code == 0, "\(run.output)\(run.errors)")
        #expect(try FileManager.default.contentsOfDirectory(atPath: scratch).isEmpty)
        // A data folder that does not exist is an error, and is not created.
        let other = folder.path + "/other"
        let none = try await CommandRun.run("verify", "--data", other, in: folder)
        #expect(none.code == 2)
        #expect(!FileManager.default.fileExists(atPath: other))
    }

    @Test func changedMissingAndExtraRowsAreReported() async throws {
        _ = try await fill(seed: 2)
        try await execute(
            "UPDATE person SET name = 'flipped' WHERE rowid = (SELECT min(rowid) FROM person WHERE name IS NOT NULL)",
            on: "tables.db")
        let flipped = try await verify()
        #expect(flipped.code == 1)
        let line = try #require(flipped.output.split(separator: "\n").first { $0.contains("DIFFERENT") })
        #expect(line.hasPrefix("  tables    DIFFERENT: table person, owner "))
        #expect(line.contains(", column name: expected \"n"))
        #expect(line.hasSuffix(", found \"flipped\""))

        try await execute("DELETE FROM note WHERE rowid = (SELECT min(rowid) FROM note)", on: "tables.db")
        let gone = try await verify()
        #expect(gone.code == 1)
        #expect(gone.output.contains("table note, owner ") || gone.output.contains("(and 1 more)"))
        try await execute(
            "UPDATE person SET id = 'stray' WHERE rowid = (SELECT max(rowid) FROM person)", on: "tables.db")
        let stray = try await verify()
        #expect(stray.code == 1)
        #expect(stray.output.contains("more)"))
    }

    @Test func changedProgressOfADeviceIsReported() async throws {
        _ = try await fill(seed: 3)
        try await execute(
            "UPDATE weir_devices SET highest_batch = highest_batch + 7 WHERE device = (SELECT min(device) FROM weir_devices)",
            on: "tables.db")
        let progress = try await verify()
        #expect(progress.code == 1)
        #expect(progress.output.contains(", highest batch: expected "), "\(progress.output)")
        try await execute(
            "UPDATE weir_partitions SET time_stamp = time_stamp + 1, ordered_offset = ordered_offset + 1000",
            on: "tables.db")
        let position = try await verify()
        #expect(position.code == 1)
        #expect(position.output.contains("  position  DIFFERENT: the partition's newest timeStamp: expected "))
        #expect(position.output.contains("(and 1 more)"))
    }

    @Test func aChangedStreamRowIsReported() async throws {
        _ = try await fill(seed: 4)
        let partition = try await busiest { ("SELECT count(*) FROM stream", "fanout-\($0).db") }
        try await execute(
            """
            UPDATE stream SET json = CAST(replace(CAST(json AS TEXT), '"deleted":', '"deletes":') AS BLOB)
            WHERE time_stamp = (SELECT max(time_stamp) FROM stream)
            """, on: "fanout-\(partition).db")
        let altered = try await verify()
        #expect(altered.code == 1)
        #expect(altered.output.contains("  stream    DIFFERENT: table "), "\(altered.output)")
        #expect(altered.output.contains("\"deletes\":"))
        try await execute(
            "DELETE FROM stream WHERE time_stamp = (SELECT max(time_stamp) FROM stream)", on: "fanout-\(partition).db")
        let gone = try await verify()
        #expect(gone.code == 1)
        #expect(gone.output.contains("found no such row"), "\(gone.output)")
    }

    @Test func aChangedResultIsReported() async throws {
        _ = try await fill(seed: 5)
        let partition = try await busiest { ("SELECT count(*) FROM ordered_\($0)", "log.db") }
        // A name, which begins with n, as JSON: one byte of it.
        let place = try await integer(
            "SELECT max(place) FROM ordered_\(partition) WHERE instr(value, X'226E') > 0", on: "log.db")
        try await execute(
            """
            UPDATE ordered_\(partition) SET value = CAST(replace(CAST(value AS TEXT), '"n', '"m') AS BLOB)
            WHERE place = \(place)
            """, on: "log.db")
        let altered = try await verify()
        #expect(altered.code == 1)
        let line = try #require(altered.output.split(separator: "\n").first { $0.contains("DIFFERENT") })
        #expect(line.hasPrefix("  ordered   DIFFERENT: ordered offset \(place), table person, owner "), "\(line)")
        #expect(line.contains(", column name: expected \"n"))
        #expect(line.contains(", found \"m"))
        #expect(try await CommandRun.run("replay", "--data", data, "--replace", in: folder).code == 1)
    }

    @Test func changesThatDoNotFollowFromUploadsAreReported() async throws {
        _ = try await fill(seed: 6)
        let partition = try await busiest { ("SELECT count(*) FROM changes_\($0)", "log.db") }
        try await execute("UPDATE changes_\(partition) SET key = X'61' WHERE place = 0", on: "log.db")
        let altered = try await verify()
        #expect(altered.code == 1)
        #expect(
            altered.output.contains("  changes   DIFFERENT: changes[\(partition)] offset 0, part "), "\(altered.output)"
        )
    }

    @Test func recordsRemovedByRetentionAreNoDifference() async throws {
        _ = try await fill(seed: 12)
        for partition in 0..<2 {
            // As retention does, which leaves the newest.
            for topic in ["uploads", "ordered"] {
                let table = "\(topic)_\(partition)"
                try await execute(
                    "DELETE FROM \(table) WHERE place < (SELECT max(place) FROM \(table))", on: "log.db")
            }
        }
        let run = try await verify()
        #expect(run.code == 0, "\(run.output)\(run.errors)")
        #expect(run.output.contains(" older ones were removed by retention"))
        let replay = try await CommandRun.run("replay", "--data", data, "--replace", in: folder)
        #expect(replay.code == 0, "\(replay.output)\(replay.errors)")
        let weir = try await TestServer.start(in: folder)
        var fresh = TestDevice(weir, syncID: "abc", knowledgeID: "fresh", links: "def:write,ghi:write")
        _ = try await fresh.sync([TestDevice.change("after", ["name": "x"])])
        try await fresh.drain()
        #expect(fresh.visible.count > 1)
        #expect(await weir.stop() == 0)
        #expect(try await verify().code == 0)
    }

    @Test func verifyEndsWithTwoWhereItCannotCompare() async throws {
        let none = try await verify()
        #expect(none.code == 2)
        #expect(none.errors.contains("there is no log in"))
        let weir = try await TestServer.start(in: folder)
        let running = try await verify()
        #expect(running.code == 2)
        #expect(running.errors.contains("another weir uses it"))
        #expect(running.errors.contains("--copy"))
        #expect(await weir.stop() == 0)
        try FileManager.default.removeItem(atPath: data + "/tables.db")
        let missing = try await verify()
        #expect(missing.code == 2)
        #expect(missing.output.contains("  tables    cannot say: there are none"))
        #expect(!FileManager.default.fileExists(atPath: data + "/tables.db"))
    }

    // MARK: Replaying

    @Test func lostTablesAreRebuiltAndDevicesContinue() async throws {
        let before = try await fill(seed: 7)
        let orderedBefore = try await integer("SELECT count(*) FROM ordered_0", on: "log.db")
        try FileManager.default.removeItem(atPath: data + "/tables.db")
        let replay = try await CommandRun.run("replay", "--data", data, "--replace", in: folder)
        #expect(replay.code == 0, "\(replay.output)\(replay.errors)")
        #expect(try await verify().code == 0)

        let weir = try await TestServer.start(in: folder)
        var devices = before.map { device in
            var next = TestDevice(
                weir, syncID: device.client.headers["X-Sync-Id"] ?? "", knowledgeID: device.knowledgeID,
                links: device.client.headers["X-Sync-Links"])
            (next.batch, next.knowledge, next.rows) = (device.batch, device.knowledge, device.rows)
            return next
        }
        let answer = try await devices[0].sync([TestDevice.change("after", ["name": "x"])])
        #expect(TestDevice.verdicts(answer) == ["applied"])
        for place in devices.indices { try await devices[place].drain() }
        var fresh = TestDevice(weir, syncID: "abc", knowledgeID: "fresh", links: "def:write,ghi:write")
        try await fresh.drain()
        for device in devices { #expect(device.visible == fresh.visible) }
        #expect(await weir.stop() == 0)
        #expect(try await verify().code == 0)
        // Only the new batch was published.
        #expect(try await integer("SELECT count(*) FROM ordered_0", on: "log.db") <= orderedBefore + 1)
    }

    @Test func replacedTablesAndStreamsAreKeptAside() async throws {
        _ = try await fill(seed: 8)
        try await execute("UPDATE person SET name = 'flipped'", on: "tables.db")
        for number in 1...2 {
            let replay = try await CommandRun.run("replay", "--data", data, "--replace", in: folder)
            #expect(replay.code == 0, "\(replay.output)\(replay.errors)")
            #expect(replay.output.contains("\(data)/replaced-\(number)"))
        }
        let aside = try FileManager.default.contentsOfDirectory(atPath: data + "/replaced-1").sorted()
        #expect(aside == ["fanout-0.db", "fanout-1.db", "tables.db"])
        #expect(try await verify().code == 0)
    }

    @Test func tablesCanBeMadeInAnotherFolder() async throws {
        _ = try await fill(seed: 9)
        let into = folder.path + "/made"
        let replay = try await CommandRun.run("replay", "--data", data, "--into", into, in: folder)
        #expect(replay.code == 0, "\(replay.output)\(replay.errors)")
        for table in ["person", "note", "seat", "amount", "weir_devices", "weir_partitions"] {
            let count = try await integer("SELECT count(*) FROM \(table)", on: "tables.db")
            #expect(try await integer("SELECT count(*) FROM \(table)", on: "../made/tables.db") == count)
        }
        let again = try await CommandRun.run("replay", "--data", data, "--into", into, in: folder)
        #expect(again.code == 1)
        #expect(again.errors.contains("tables.db exists already"))
        for arguments in [["replay", "--data", data], ["replay", "--data", data, "--replace", "--into", into]] {
            let wrong = try await CommandRun.run(arguments, in: folder)
            #expect(wrong.code == 64)
            #expect(wrong.errors.contains("either --into DIR or --replace"))
        }
    }

    @Test func tablesWithAnotherEpochAreRefused() async throws {
        _ = try await fill(seed: 10, rounds: 3)
        let other = try TestFolder()
        let weir = try await TestServer.start(in: other)
        #expect(await weir.stop() == 0)
        try FileManager.default.removeItem(atPath: data + "/tables.db")
        try FileManager.default.moveItem(atPath: other.path + "/data/tables.db", toPath: data + "/tables.db")
        let start = try await CommandRun.run(
            [
                "run", "--schema", folder.path + "/schema.yaml", "--data", data, "--partitions", "2", "--clock",
                "sequence(100)", "--address", "127.0.0.1:0",
            ], in: folder)
        #expect(start.code == 1)
        #expect(start.errors.contains("the tables have epoch "), "\(start.errors)")
        let run = try await verify()
        #expect(run.code == 2)
        #expect(run.errors.contains("the tables have epoch "))
        // As the message advises: they are moved aside and rebuilt.
        #expect(try await CommandRun.run("replay", "--data", data, "--replace", in: folder).code == 0)
        #expect(try await verify().code == 0)
    }
}
