import Foundation
import Fuzzing
import Seeded
import Testing
import WeirClient

/// Apps with `WeirClient` against a running server, over HTTP.
@Suite(.timeLimit(.minutes(5))) struct ClientTests {
    private static let schema = """
        tables:
          list:
            columns:
              name: text
          item:
            columns:
              title: text
              note: text
              list_id: { type: text, references: list }
        """
    private static let sql = """
        CREATE TABLE list (id TEXT PRIMARY KEY NOT NULL, name TEXT);
        CREATE TABLE item (
            id TEXT PRIMARY KEY NOT NULL, title TEXT, note TEXT, list_id TEXT REFERENCES list (id) ON DELETE CASCADE);
        """
    private static let items = """
        SELECT id || ' ' || ifnull(title, '-') || ' ' || ifnull(note, '-') || ' ' || ifnull(list_id, '-')
        FROM item ORDER BY id
        """
    private static let lists = "SELECT id || ' ' || name FROM list ORDER BY id"

    private func start(_ folder: TestFolder, _ settings: [String: String] = [:]) async throws -> WeirProcess {
        try folder.write(Self.schema, to: "schema.yaml")
        return try await WeirProcess.start(schema: folder.path + "/schema.yaml", in: folder, settings: settings)
    }

    private func app(_ name: String, _ folder: TestFolder) async throws -> ClientApp {
        try await ClientApp(name, in: folder, Self.sql, tables: ["list", "item"])
    }

    /// Syncs all apps until each has what the others have sent, and expects them and their metadata to be equal.
    private func expectEqual(_ apps: [ClientApp], _ comment: Comment = "") async throws {
        for _ in 0..<2 { for app in apps { try await app.weir.sync() } }
        for app in apps {
            #expect(try await app.weir.pendingRows() == 0, comment)
            for query in [Self.lists, Self.items] { #expect(try app.rows(query) == apps[0].rows(query), comment) }
            for table in 1...2 { #expect(try app.states(table) == apps[0].states(table), comment) }
        }
    }

    @Test func whatOneAppWritesAppearsInTheOtherWhileBothRun() async throws {
        let folder = try TestFolder()
        let weir = try await start(folder)
        let (phone, laptop) = (try await app("phone", folder), try await app("laptop", folder))
        for app in [phone, laptop] {
            #expect(try await app.attach(weir.port) == .startedEmpty)
            try await app.weir.start()
            try await app.weir.firstSync()
        }
        try phone.run("INSERT INTO list VALUES ('l', 'Home'); INSERT INTO item VALUES ('i', 'Milk', NULL, 'l')")
        try await laptop.waits(for: ["i Milk - l"], Self.items)
        try laptop.run("UPDATE item SET note = 'two' WHERE id = 'i'")
        try await phone.waits(for: ["i Milk two l"], Self.items)
        try phone.run("DELETE FROM list")
        try await laptop.waits(for: [], Self.items)
        for app in [phone, laptop] { await app.weir.stop() }
        try await expectEqual([phone, laptop])
        for app in [phone, laptop] { await app.weir.close() }
        #expect(await weir.stop() == 0)
        try await Verification.expectEqual(folder)
    }

    @Test func editsMadeOfflineAreMergedByColumn() async throws {
        let folder = try TestFolder()
        var weir = try await start(folder)
        let (phone, laptop) = (try await app("phone", folder), try await app("laptop", folder))
        for app in [phone, laptop] { try await app.attach(weir.port) }
        try phone.run("INSERT INTO list VALUES ('l', 'Home'); INSERT INTO item VALUES ('i', 'Milk', NULL, 'l')")
        try await expectEqual([phone, laptop])
        #expect(await weir.stop() == 0)
        try phone.run("UPDATE item SET title = 'Oat milk'; INSERT INTO item VALUES ('p', 'Phone', NULL, 'l')")
        try laptop.run("UPDATE item SET note = 'two'; INSERT INTO item VALUES ('q', 'Laptop', NULL, NULL)")
        let error = await #expect(throws: SyncError.self) { try await phone.weir.sync() }
        #expect(error?.kind == .unreachable)
        #expect(try await phone.weir.pendingRows() == 2)
        weir = try await start(folder)
        for app in [phone, laptop] { #expect(try await app.attach(weir.port) == .resumed) }
        try await expectEqual([phone, laptop])
        #expect(try phone.rows(Self.items) == ["i Oat milk two l", "p Phone - l", "q Laptop - -"])
        #expect(await weir.stop() == 0)
        try await Verification.expectEqual(folder)
    }

    @Test func anAppWithATokenSyncsAndOneWithoutIsAskedToLogIn() async throws {
        let folder = try TestFolder()
        try folder.write(String(repeating: "s", count: 32), to: "secret")
        let settings = ["auth.method": "jwt", "auth.secret-file": folder.path + "/secret"]
        let weir = try await start(folder, settings)
        let run = try await CommandRun.run(
            ["token", "create", "ada", "--auth.secret-file", folder.path + "/secret"], in: folder)
        #expect(run.code == 0, "\(run.errors)")
        let token = run.output.trimmingCharacters(in: .whitespacesAndNewlines)
        let phone = try await app("phone", folder)
        let url = ClientApp.url(weir.port)
        let error = await #expect(throws: SyncError.self) {
            try await phone.weir.attach("me", server: url) { "no token" }
        }
        #expect(error?.kind == .unauthenticated)
        #expect(try await phone.weir.attach("me", server: url) { token } == .startedEmpty)
        try phone.run("INSERT INTO list VALUES ('l', 'Home')")
        try await phone.weir.start()
        try await phone.weir.firstSync()
        for await status in phone.weir.status where status.pendingRows == 0 && status.lastSuccess != nil { break }
        await phone.weir.close()
        #expect(await weir.stop() == 0)
    }

    @Test func aFirstSyncOfManyRowsComesInPages() async throws {
        let folder = try TestFolder()
        let weir = try await start(folder)
        let phone = try await app("phone", folder)
        try await phone.attach(weir.port)
        try phone.run(
            """
            WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 12000)
            INSERT INTO item SELECT printf('%05d', i), 'title ' || i, NULL, NULL FROM n
            """)
        try await phone.weir.sync()
        let laptop = try await app("laptop", folder)
        #expect(try await laptop.attach(weir.port) == .usedRemote)
        try await laptop.weir.sync()
        #expect(try laptop.rows("SELECT count(*) FROM item") == ["12000"])
        try await expectEqual([phone, laptop])
        #expect(await weir.stop() == 0)
    }

    /// Apps write at random while requests, answers and the server are lost.
    @Test(arguments: TestLength.seeds(2, short: 1, long: 40)) func appsConvergeOverAnUnreliableNetwork(
        seed: UInt64
    ) async throws {
        let folder = try TestFolder()
        var weir = try await start(folder)
        var random = SeededRandom(seed: seed)
        var apps: [ClientApp] = []
        for number in 0..<3 { apps.append(try await app("device\(number)", folder)) }
        let networks = apps.indices.map { LossyTransport(SeededRandom(seed: seed &* 31 &+ UInt64($0)), chance: 15) }
        for (app, network) in zip(apps, networks) {
            while true {
                do {
                    try await app.attach(weir.port, transport: network)
                    break
                } catch is SyncError {}
            }
        }
        for _ in 0..<60 {
            let index = Int.random(in: 0..<apps.count, using: &random)
            try write(apps[index], &random)
            if random.once(in: 3) {
                do {
                    try await apps[index].weir.sync()
                } catch is SyncError {
                    // The next session repeats what was lost.
                }
            }
            if random.once(in: 20) {
                if random.chance(50) { _ = await weir.kill() } else { #expect(await weir.stop() == 0) }
                weir = try await start(folder)
                for (app, network) in zip(apps, networks) { try await app.attach(weir.port, transport: network) }
            }
        }
        for app in apps { try await app.attach(weir.port) }
        let fresh = try await app("fresh", folder)
        try await fresh.attach(weir.port)
        for app in apps { try await app.weir.sync() }
        try await expectEqual(apps + [fresh], "seed \(seed)")
        #expect(await weir.stop() == 0)
        try await Verification.expectEqual(folder)
    }

    private func write(_ app: ClientApp, _ random: inout SeededRandom) throws {
        let list = "l\(Int.random(in: 0..<4, using: &random))"
        let item = "i\(Int.random(in: 0..<12, using: &random))"
        let text = "t\(Int.random(in: 0..<1000, using: &random))"
        switch Int.random(in: 0..<8, using: &random) {
        case 0...1:
            try app.run(
                "INSERT INTO list VALUES ('\(list)', '\(text)') ON CONFLICT (id) DO UPDATE SET name = '\(text)'")
        case 2...3:
            let hasList = try app.rows("SELECT id FROM list WHERE id = '\(list)'").isEmpty == false
            try app.run(
                """
                INSERT OR REPLACE INTO item VALUES ('\(item)', '\(text)', NULL, \(hasList ? "'\(list)'" : "NULL"))
                """)
        case 4: try app.run("UPDATE item SET title = '\(text)' WHERE id = '\(item)'")
        case 5: try app.run("UPDATE item SET note = '\(text)'")
        case 6: try app.run("DELETE FROM item WHERE id = '\(item)'")
        default: try app.run("DELETE FROM list WHERE id = '\(list)'")
        }
    }
}
