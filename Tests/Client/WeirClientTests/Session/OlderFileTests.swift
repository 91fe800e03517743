import Foundation
import Synchronization
import TestResources
import Testing
import WeirClient

/// Files that earlier versions of WeirClient have written are opened and synced by this one.
///
/// docs/client/files has one for each format, and for each that an opening completes without another number. `WEIR_WRITE_CLIENT_FILE=1
/// deploy/test OlderFileTests` writes that of the present format, which is done once, when a format is released.
@Suite struct OlderFileTests {
    private static let files = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "docs/client/files")
    private static let newest = "format-1b.sqlite"
    private static let tables = [
        "list": ["name": "text"], "item": ["title": "text", "list": "text", "at": "timestamp"],
        "mark": ["name": "text"],
    ]
    private static let sql = """
        CREATE TABLE list (id TEXT PRIMARY KEY NOT NULL, name TEXT UNIQUE);
        CREATE TABLE item (
            id BLOB PRIMARY KEY NOT NULL, title TEXT, list TEXT REFERENCES list ON DELETE CASCADE, at DATETIME, local TEXT);
        CREATE TABLE mark (id INTEGER PRIMARY KEY, name TEXT)
        """
    private static let names = ["item", "list", "mark"]

    private static func uuid(_ number: Int) -> String { "x'0000000000000000000000000000000\(number)'" }
    private static func id(_ number: Int) -> String { "00000000-0000-0000-0000-00000000000\(number)" }

    /// A file with everything that one can have: a batch without outcome, edits beneath and above it, kept edits, parked rows, a held
    /// column, a tombstone, another owner's rows, a change of a key, a tracked outcome.
    @Test(.enabled(if: ProcessInfo.processInfo.environment["WEIR_WRITE_CLIENT_FILE"] != nil))
    func writesTheFileOfThisFormat() async throws {
        let server = ContractServer(Self.tables)
        server.state.withLock { ($0.policy, $0.links) = ("checkBase", ["xyz"]) }
        let device = try await Device(Self.sql, tables: Self.names)
        try await device.attach(server)
        server.write("list", "l", ["name": "L"])
        server.write("list", "gone", ["name": "G"])
        server.write("list", "theirs", ["name": "T"], owner: "xyz")
        for number in 1...3 {
            server.write("mark", "\(number)", ["name": "M\(number)"], owner: number == 3 ? "xyz" : nil)
        }
        for number in 1...4 { server.write("item", Self.id(number), ["title": "T\(number)", "list": "l"]) }
        try await device.weir.sync()
        server.write("list", "gone", nil)
        server.write("item", Self.id(1), ["title": "theirs"])
        server.write("item", Self.id(8), ["title": "orphan", "list": "missing"])
        server.write("list", "taken", ["name": "L"])
        try device.run("UPDATE item SET title = 'mine' WHERE id = \(Self.uuid(1)); UPDATE item SET local = 'here'")
        try await device.weir.sync()
        try await device.weir.write { try $0.execute("UPDATE item SET title = 'sent' WHERE id = \(Self.uuid(2))") }
        try device.run("INSERT INTO item (id, title, list) VALUES (\(Self.uuid(5)), 'of theirs', 'theirs')")
        try await device.sync(with: server, losing: .lostAnswer)
        try device.run(
            """
            UPDATE item SET at = '2026-01-02 03:04:05.678' WHERE id = \(Self.uuid(2)); DELETE FROM item WHERE id = \(Self.uuid(3));
            UPDATE list SET id = 'renamed' WHERE id = 'theirs'; INSERT INTO list VALUES ('new', 'N');
            UPDATE mark SET name = 'edited' WHERE id = 1; DELETE FROM mark WHERE id = 2; INSERT INTO mark (name) VALUES ('M4')
            """)
        // A part stays in the log.
        _ = try await device.weir.pendingRows()
        try device.run("UPDATE item SET title = 'logged' WHERE id = \(Self.uuid(4))")
        await device.weir.close()
        try device.run("PRAGMA journal_mode = DELETE; PRAGMA page_size = 512; VACUUM")
        device.database.close()
        try FileManager.default.createDirectory(at: Self.files, withIntermediateDirectories: true)
        try Data(contentsOf: URL(filePath: device.folder.file())).write(to: Self.files.appending(path: Self.newest))
    }

    private static let known: [String] = {
        do {
            return try FileManager.default.contentsOfDirectory(atPath: files.path).filter { $0.hasPrefix("format-") }
                .sorted()
        } catch {
            return []
        }
    }()

    /// What a new file has beside the app's tables.
    private func sideTables(_ database: Database) throws -> [String] {
        try database.map(
            """
            SELECT name || ' ' || ifnull(sql, '') FROM sqlite_schema
            WHERE name GLOB 'weir_*' AND name NOT GLOB 'weir_*_[0-9]*' AND type = 'table' ORDER BY name
            """
        ) { $0.string(at: 0) }
    }

    /// Another form of a side table is another format, of which a file belongs here.
    @Test func thereIsAFileOfTheNewestFormat() async throws {
        #expect(Self.known.contains(Self.newest))
        let folder = try TemporaryFolder()
        try Data(contentsOf: Self.files.appending(path: Self.newest)).write(to: URL(filePath: folder.file()))
        let stored = try Database(path: folder.file())
        defer { stored.close() }
        let device = try await Device(Self.sql, tables: Self.names)
        let tables = try sideTables(device.database)
        #expect(tables.count > 10)
        #expect(try sideTables(stored) == tables)
    }

    @Test(arguments: known) func aFileOfThisFormatIsOpenedAndSynced(name: String) async throws {
        let device = try await Device(
            copying: { try FileManager.default.copyItem(atPath: Self.files.appending(path: name).path, toPath: $0) },
            tables: Self.names)
        let weir = device.weir
        #expect(await weir.gaps.isEmpty)
        let items =
            "SELECT hex(id) || ' ' || title || ' ' || ifnull(at, '-') || ' ' || ifnull(local, '-') FROM item ORDER BY id"
        let rows = [
            "00000000000000000000000000000001 theirs - here",
            "00000000000000000000000000000002 sent 2026-01-02 03:04:05.678 here",
            "00000000000000000000000000000004 logged - here", "00000000000000000000000000000005 of theirs - -",
        ]
        #expect(try device.rows(items) == rows)
        #expect(try device.rows("SELECT id || ' ' || name FROM list ORDER BY id") == ["l L", "new N", "renamed T"])
        let marks = "SELECT id || ' ' || name FROM mark ORDER BY id"
        #expect(try device.rows(marks) == ["1 edited", "3 M3", "4 M4"])
        #expect(try await weir.pendingRows() == 10)
        #expect(try await weir.keptEdits().map(\.code) == ["conflict"])
        #expect(try await weir.keptEdits().first?.local["title"] == .text("mine"))
        #expect(try await weir.parkedRows().map(\.id).sorted() == [Self.id(8), "taken"])

        // The server of that time is gone, and the other owner with it: everything is pulled from another one, and what was pending is sent.
        let server = ContractServer(Self.tables)
        server.state.withLock { $0.epoch = "e2" }
        server.write("list", "l", ["name": "L"])
        server.write("item", Self.id(1), ["title": "theirs", "list": "l"])
        server.write("mark", "1", ["name": "M1"])
        try await device.attach(server)
        #expect(weir.currentStatus.isComplete)
        try await weir.sync()
        #expect(try await weir.pendingRows() == 0)
        #expect(try await Set(weir.keptEdits().map(\.code)) == ["conflict", "revoked"])
        let fresh = try await Device(Self.sql, tables: Self.names)
        try await fresh.attach(server)
        try await fresh.weir.sync()
        // The device keeps its spelling of the time.
        let texts =
            "SELECT hex(id) || ' ' || title || ' ' || ifnull(rtrim(replace(at, ' ', 'T'), 'Z'), '-') FROM item ORDER BY id"
        #expect(try fresh.rows(texts) == device.rows(texts))
        #expect(try fresh.rows(marks) == device.rows(marks))
        #expect(server.live.contains { $0.hasPrefix("item \(Self.id(2))") && $0.contains("2026-01-02T03:04:05.678") })
        // And it works on.
        try device.run("INSERT INTO list VALUES ('later', 'X')")
        try await weir.sync()
        #expect(server.live.contains { $0.hasPrefix("list later") })
    }
}
