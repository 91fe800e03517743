import Foundation
import Testing

/// The error handling and the essential test scenarios of the SQLiteNow document (10.2 and 10.4), by its client at the running server.
@Suite(.timeLimit(.minutes(5))) struct SQLiteNowErrorTests {
    /// A server with two devices.
    func withDevices(
        _ settings: [String: String] = [:],
        _ body: (_ a: SQLiteNowClient, _ b: SQLiteNowClient, _ port: UInt16, TestFolder) async throws -> Void
    ) async throws {
        try await SQLiteNowTests.withServer(settings) { port, folder in
            try await body(
                try SQLiteNowTests.client("a", port, folder), try SQLiteNowTests.client("b", port, folder), port, folder
            )
        }
    }

    static func insert(_ device: SQLiteNowClient, _ id: String, _ name: String = "N") throws {
        try device.database.run("INSERT INTO users VALUES (?1, ?2, NULL)", [JSON(id), JSON(name)])
    }

    static func expectEqual(_ devices: [SQLiteNowClient], _ port: UInt16, _ folder: TestFolder) async throws {
        for _ in 0..<2 {
            for device in devices { try await device.sync() }
        }
        let fresh = try SQLiteNowTests.client("fresh-\(UUID().uuidString)", port, folder)
        try await fresh.download(includeSelf: true)
        for device in devices {
            #expect(try !device.hasPending && device.meta == fresh.meta, "\(device.source)")
            for table in ["users", "tasks"] {
                let (rows, expected) = (try device.rows(of: table), try fresh.rows(of: table))
                #expect(rows == expected, "\(table) of \(device.source)")
            }
        }
    }

    // MARK: Upload errors

    @Test func anInvalidChangeIsShownToTheAppAndStaysQueued() async throws {
        try await withDevices { a, b, _, _ in
            try Self.insert(a, "u1")
            try a.database.run("UPDATE _sync_pending SET payload = json_set(payload, '$.nick', 'N')")
            try Self.insert(a, "u2")
            try await a.sync()
            #expect(a.errors.map { $0["status"] } == ["invalid"])
            #expect(a.errors[0]["message"].string?.contains("nick") == true)
            #expect(try a.hasPending)
            try await b.sync()
            #expect(try b.rows(of: "users").map { $0["id"] } == ["u2"])
            // The app repairs what it is told of.
            try a.database.run("UPDATE _sync_pending SET payload = json_remove(payload, '$.nick')")
            try await a.sync()
            #expect(try !a.hasPending && a.errors.count == 1)
        }
    }

    /// The owner may have one row.
    @Test func aChangeThatMayPassLaterIsSentAgainWithBackoff() async throws {
        try await withDevices(["limits.max-owner-rows": "1"]) { a, _, _, _ in
            for id in ["u1", "u2"] { try Self.insert(a, id) }
            var moments: [Int] = []
            for second in 0..<20 {
                if second == 10 { try a.database.run("DELETE FROM users WHERE id = 'u1'") }
                a.now = second
                let count = a.errors.count
                try await a.syncWhenDue()
                if a.errors.count > count { moments.append(second) }
            }
            // The delete of the other is behind it in the queue.
            #expect(moments == [0, 2, 6, 14] && a.errors.allSatisfy { $0["status"] == "materialize_error" })
            a.now = a.nextSync
            try await a.syncWhenDue()
            #expect(try !a.hasPending && a.failures == 0 && a.meta.map { $0["deleted"] } == [1, 0])
        }
    }

    @Test func aStatusThatTheClientDoesNotKnowKeepsTheChange() async throws {
        try await withDevices { a, b, port, folder in
            try Self.insert(a, "u1")
            a.alter = { answer in
                answer["statuses"].isNull
                    ? answer
                    : answer.with(
                        "statuses", JSON(answer["statuses"].array.map { $0.with("status", "postponed").value }))
            }
            try await a.sync()
            #expect(a.errors.map { $0["status"] } == ["postponed"])
            #expect(try a.hasPending)
            a.alter = { $0 }
            // It was applied: the repeat is not a second change.
            try await a.sync()
            let version = try #require(try a.meta.first?["version"].int)
            try await b.sync()
            #expect(try b.meta.first?["version"].int == version)
            try await Self.expectEqual([a, b], port, folder)
        }
    }

    @Test func requestsWithoutAnAnswerAreRepeatedEverMoreSeldom() async throws {
        try await withDevices { a, b, port, folder in
            try Self.insert(a, "u1")
            var requests = 0
            a.network = {
                requests += 1
                return .losesRequest
            }
            var moments: [Int] = []
            for second in 0..<200 {
                let before = requests
                a.now = second
                try await a.syncWhenDue()
                if requests > before { moments.append(second) }
            }
            #expect(moments == [0, 2, 6, 14, 30, 62, 126, 190])
            #expect(try a.hasPending && a.watermark == 0)
            a.network = { .works }
            a.now = a.nextSync
            try await a.syncWhenDue()
            #expect(try !a.hasPending && a.failures == 0 && a.nextSync == 0)
            try await Self.expectEqual([a, b], port, folder)
        }
    }

    // MARK: Download errors

    @Test func malformedChangesAreLoggedAndSkipped() async throws {
        try await withDevices { a, b, port, folder in
            for number in 1...8 { try Self.insert(a, "u\(number)") }
            try await a.sync()
            let damages: [(JSON) -> JSON] = [
                { $0.with("pk", nil) }, { $0.with("op", "MERGE") }, { $0.with("payload", "u3") },
                { $0.with("payload", ["id": "u4", "name": "N"]) }, { $0.with("serverVersion", "100") },
                { $0.with("tableName", "cars") }, { $0.with("payload", nil) }, { $0 },
            ]
            b.alter = { answer in
                let changes = zip(damages, answer["changes"].array).map { $0($1).value }
                return answer.with("changes", JSON(changes))
            }
            try await b.sync()
            #expect(try b.rows(of: "users").map { $0["id"] } == ["u8"])
            #expect(try b.skipped.count == 7 && b.meta.count == 1 && !b.hasPending)
            // The position is behind them: the next edit brings the whole row.
            b.alter = { $0 }
            try await b.sync()
            #expect(try b.rows(of: "users").count == 1 && b.skipped.count == 7)
            try a.database.run("UPDATE users SET name = 'M'")
            try await a.sync()
            try await Self.expectEqual([a, b], port, folder)
            #expect(try b.rows(of: "users").count == 8)
        }
    }

    @Test func aPageWithoutAPositionChangesNothing() async throws {
        try await withDevices { a, b, port, folder in
            try Self.insert(a, "u1")
            try await a.sync()
            b.alter = { $0.with("nextAfter", nil) }
            await #expect(throws: SQLiteNowClient.Malformed.self) { try await b.sync() }
            #expect(try b.watermark == 0 && b.rows(of: "users").isEmpty && b.meta.isEmpty)
            b.alter = { $0 }
            try await Self.expectEqual([a, b], port, folder)
        }
    }

    @Test func aDatabaseErrorRollsThePageBackAndIsShown() async throws {
        try await SQLiteNowTests.withServer { port, folder in
            let a = try SQLiteNowTests.client("a", port, folder)
            try AppDatabase(path: folder.path + "/b.db").run(
                "CREATE TABLE users(id TEXT PRIMARY KEY, name CHECK(name <> 'Bob'), email)")
            let b = try SQLiteNowTests.client("b", port, folder)
            try Self.insert(a, "u1", "Alice")
            try Self.insert(a, "u2", "Bob")
            try await a.sync()
            await #expect(throws: (any Error).self) { try await b.sync() }
            #expect(try b.watermark == 0 && b.rows(of: "users").isEmpty && b.meta.isEmpty)
            // The triggers are on again: what the user does is queued.
            try Self.insert(b, "u3", "Carl")
            #expect(try b.hasPending)
            try a.database.run("UPDATE users SET name = 'Bert' WHERE id = 'u2'")
            try await a.sync()
            try await b.sync()
            #expect(try b.rows(of: "users").map { $0["name"] } == ["Alice", "Bert", "Carl"])
            try await Self.expectEqual([a, b], port, folder)
        }
    }

    // MARK: Conflict resolution errors

    /// One that shows no row: the local edit is kept, and no pending change is dropped without a decision.
    @Test func aConflictWithoutARowKeepsTheLocalEdit() async throws {
        try await withDevices { a, b, port, folder in
            try Self.insert(a, "u1")
            try await a.sync()
            try await b.sync()
            for (device, name) in [(b, "B"), (a, "A")] {
                try device.database.run("UPDATE users SET name = ?1", [JSON(name)])
            }
            try await b.sync()
            a.alter = { answer in
                answer["statuses"].isNull
                    ? answer
                    : answer.with("statuses", JSON(answer["statuses"].array.map { $0.with("serverRow", nil).value }))
            }
            try await a.sync()
            #expect(a.decisions == [#"KeepLocal "users"/"u1""#] && b.decisions == [])
            try await Self.expectEqual([a, b], port, folder)
            #expect(try b.rows(of: "users").map { $0["name"] } == ["A"])
        }
    }

    // MARK: Essential test scenarios

    /// Scenario 3: a sync is interrupted at each of its requests.
    @Test(arguments: [SQLiteNowClient.Network.losesRequest, .losesAnswer])
    func aSyncThatIsInterruptedAnywhereLosesNothing(failure: SQLiteNowClient.Network) async throws {
        try await withDevices { a, b, port, folder in
            var (interrupted, isOver) = (0, false)
            while !isOver {
                for (device, name) in [(a, "a"), (b, "b")] {
                    try Self.insert(device, "\(name)\(interrupted)")
                    try device.database.run("UPDATE users SET email = ?1", [JSON("\(name)\(interrupted)")])
                }
                try await b.sync()
                let before = try a.watermark
                var request = 0
                a.network = { [interrupted] in
                    defer { request += 1 }
                    return request == interrupted ? failure : .works
                }
                do {
                    try await a.sync()
                    isOver = true
                } catch is SQLiteNowClient.Offline {
                    // It has what is below its position, and else it stays where it was.
                    let hasOther = try a.rows(of: "users").contains { $0["id"] == JSON("b\(interrupted)") }
                    #expect(try a.watermark == before || hasOther)
                }
                a.network = { .works }
                try await Self.expectEqual([a, b], port, folder)
                #expect(try a.rows(of: "users").count == 2 * (interrupted + 1))
                interrupted += 1
            }
            // An upload, a download that looks back, and one of what is new, at least.
            #expect(interrupted > 3)
        }
    }

    /// Scenario 2.
    @Test func devicesThatSyncAtTheSameTimeConverge() async throws {
        try await SQLiteNowTests.withServer { port, folder in
            let names = ["a", "b", "c", "d"]
            try await withThrowingTaskGroup { group in
                for name in names {
                    group.addTask {
                        let device = try SQLiteNowTests.client(name, port, folder)
                        for round in 0..<6 {
                            try Self.insert(device, "\(name)\(round)")
                            try device.database.run(
                                "INSERT INTO users VALUES ('shared', ?1, NULL) "
                                    + "ON CONFLICT(id) DO UPDATE SET name = excluded.name", [JSON("\(name)\(round)")])
                            try await device.sync()
                        }
                    }
                }
                try await group.waitForAll()
            }
            let devices = try names.map { try SQLiteNowTests.client($0, port, folder) }
            try await Self.expectEqual(devices, port, folder)
            let own = names.flatMap { name in (0..<6).map { "\(name)\($0)" } }
            #expect(try devices[0].rows(of: "users").compactMap { $0["id"].string } == own + ["shared"])
        }
    }
}
