import Synchronization
import TestResources
import Testing
import WeirClient

/// Rows whose foreign keys name rows that are not there.
@Suite struct OrphanRowsTests {
    static let tables = [
        "list": ["name": "text"], "item": ["title": "text", "list": "text"], "mark": ["item": "text"],
    ]
    /// The children's column has no index in one, and the parent's table comes after them.
    static let sql = """
        CREATE TABLE mark (id TEXT PRIMARY KEY NOT NULL, item INTEGER REFERENCES item (id) ON DELETE CASCADE);
        CREATE TABLE item (
            id INTEGER PRIMARY KEY, title TEXT, list TEXT REFERENCES list ON DELETE CASCADE, local TEXT);
        CREATE TABLE list (id TEXT PRIMARY KEY NOT NULL, name TEXT);
        CREATE INDEX item_list ON item (list)
        """

    /// Records which items are deleted.
    static let gone =
        "CREATE TABLE gone (id); CREATE TRIGGER gone AFTER DELETE ON item BEGIN INSERT INTO gone VALUES (OLD.id); END"

    func device(
        _ server: ContractServer, orphans: OrphanPolicy = .park, slice: Int = 250, sql: String = Self.sql
    ) async throws -> Device {
        let device = try await Device(sql, tables: ["mark", "item", "list"])
        try await attach(device, server, orphans: orphans, slice: slice)
        return device
    }

    func attach(
        _ device: Device, _ transport: any Transport, orphans: OrphanPolicy = .park, slice: Int = 250
    ) async throws {
        var options = Device.options(transport)
        options.orphans = orphans
        options.slice = slice
        try await device.weir.attach("abc", server: Device.url, options: options)
    }

    func items(_ device: Device) throws -> [String] {
        try device.rows("SELECT id || ' ' || ifnull(title, '-') || ' ' || ifnull(list, '-') FROM item ORDER BY id")
    }

    func violations(_ device: Device) throws -> Int {
        try device.rows("SELECT 'x' FROM pragma_foreign_key_check()").count
    }

    func parked(_ device: Device) async throws -> [String] {
        try await device.weir.parkedRows().map { "\($0.table) \($0.id): \($0.reason)" }.sorted()
    }

    static let missing = "item 1: its parent is missing: list names no row of list"

    @Test(arguments: [1, 250]) func aRowWhoseParentIsMissingIsParkedAndWrittenOnceTheParentIsThere(slice: Int)
        async throws
    {
        let server = ContractServer(Self.tables)
        let device = try await device(server, slice: slice)
        server.write("item", "1", ["title": "A", "list": "l"])
        server.write("mark", "m", ["item": "1"])
        server.write("item", "2", ["title": "B"])
        try await device.weir.sync()
        #expect(try items(device) == ["2 B -"])
        #expect(
            try await parked(device) == [Self.missing, "mark m: its parent is missing: item names no row of item"])
        #expect(device.weir.currentStatus.needsAttention == [.parkedRows(2)])
        // Nothing is sent because of it, and a new version waits as well.
        server.write("item", "1", ["title": "A2"])
        try await device.weir.sync()
        #expect(try await parked(device).count == 2)
        #expect(server.state.withLock { $0.applied } == 0)
        // The app inserts the parent itself.
        try device.run("INSERT INTO list VALUES ('l', 'L')")
        try await device.weir.sync()
        #expect(try items(device) == ["1 A2 l", "2 B -"])
        #expect(try device.rows("SELECT id FROM mark") == ["m"])
        #expect(try await parked(device).isEmpty)
        #expect(device.weir.currentStatus.needsAttention.isEmpty)
        // Its changes are based on the version that came.
        try device.run("UPDATE item SET title = 'mine' WHERE id = 1")
        try await device.weir.sync()
        #expect(server.live.contains(#"item 1 {"list":"l","title":"mine"} 3"#))
    }

    @Test(arguments: [1, 2, 1000], [1, 250]) func childrenMayComeBeforeTheirParents(pageRows: Int, slice: Int)
        async throws
    {
        let server = ContractServer(Self.tables)
        server.state.withLock { $0.pageRows = pageRows }
        let device = try await device(server, slice: slice)
        // The app sees none of them go in between.
        try device.run(Self.gone)
        server.write("mark", "m", ["item": "1"])
        for number in 1...3 { server.write("item", "\(number)", ["title": "A", "list": "l"]) }
        server.write("list", "l", ["name": "L"])
        try await device.weir.sync()
        #expect(try items(device) == ["1 A l", "2 A l", "3 A l"])
        #expect(try device.rows("SELECT id FROM gone").isEmpty)
        #expect(try device.rows("SELECT id FROM mark") == ["m"])
        #expect(try await parked(device).isEmpty)
        #expect(try device.rows("SELECT tbl FROM weir_orphan UNION ALL SELECT tbl FROM weir_removed").isEmpty)
    }

    @Test func aRowIsNotParkedWhileItsParentMayFollowThoughAnotherOneWaits() async throws {
        let server = ContractServer(Self.tables)
        let device = try await device(server)
        server.write("item", "9", ["list": "none"])
        try await device.weir.sync()
        try device.run(Self.gone)
        server.state.withLock { $0.pageRows = 1 }
        server.write("item", "1", ["title": "A", "list": "l"])
        server.write("list", "l", ["name": "L"])
        try await device.weir.sync()
        #expect(try items(device) == ["1 A l"])
        #expect(try device.rows("SELECT id FROM gone").isEmpty)
    }

    @Test func aParkedRowIsGoneWithItsDeletionAndItsOwner() async throws {
        let server = ContractServer(Self.tables)
        server.state.withLock { $0.links = ["xyz"] }
        let device = try await device(server)
        server.write("item", "1", ["title": "A", "list": "l"])
        server.write("item", "2", ["title": "B", "list": "l"], owner: "xyz")
        try await device.weir.sync()
        #expect(try await parked(device).count == 2)
        server.write("item", "1", nil)
        server.state.withLock { $0.links = [] }
        try await device.weir.sync()
        #expect(try await parked(device).isEmpty)
        #expect(try items(device).isEmpty)
    }

    @Test func aParkedRowIsDeletedEverywhereIfTheAppSaysSo() async throws {
        let server = ContractServer(Self.tables)
        server.state.withLock { ($0.policy, $0.links) = ("checkBase", ["xyz"]) }
        let (device, other) = (try await device(server), try await device(server))
        server.write("item", "1", ["title": "A", "list": "l"])
        server.write("item", "2", ["title": "B", "list": "l"], owner: "xyz")
        try await device.weir.sync()
        try await other.weir.sync()
        let rows = try await device.weir.parkedRows()
        try #require(rows.map { "\($0.id) \($0.owner)" } == ["1 abc", "2 xyz"])
        for row in rows {
            let saved = try await device.weir.delete(row)
            #expect(saved.value && saved.rows.count == 1)
            // Once.
            #expect(try await device.weir.delete(row).value == false)
        }
        #expect(try await device.weir.pendingRows() == 2)
        try await device.weir.sync()
        try await other.weir.sync()
        #expect(server.live.isEmpty)
        for device in [device, other] {
            #expect(try await parked(device).isEmpty)
            #expect(try await device.weir.pendingRows() == 0)
            #expect(device.weir.currentStatus.needsAttention.isEmpty)
        }
        #expect(try device.rows("SELECT id FROM weir_row_2 WHERE deleted").count == 2)
    }

    @Test func aParkedRowWhoseDeletionIsNotStoredWaitsAgain() async throws {
        let server = ContractServer(Self.tables)
        server.state.withLock { $0.policy = "checkBase" }
        let device = try await device(server)
        server.write("item", "1", ["title": "A", "list": "l"])
        try await device.weir.sync()
        let row = try #require(try await device.weir.parkedRows().first)
        let saved = try await device.weir.delete(row)
        server.write("item", "1", ["title": "newer"])
        // A version that comes while the deletion is pending is laid beneath it.
        try await device.weir.sync()
        #expect(try await saved.outcome.map(\.status) == [.conflict])
        try await device.weir.sync()
        #expect(try await parked(device) == [Self.missing])
        #expect(try await device.weir.parkedRows().first?.row.contains("newer") == true)
        #expect(try violations(device) == 0)
        // And is written once the parent is there.
        server.write("list", "l", ["name": "L"])
        try await device.weir.sync()
        #expect(try items(device) == ["1 newer l"])
    }

    @Test func aRowThatReferencesAnotherThatWaitsFollowsItInOneAnswer() async throws {
        let node = "CREATE TABLE node (id TEXT PRIMARY KEY NOT NULL, up TEXT REFERENCES node)"
        let server = ContractServer(["node": ["up": "text"]])
        let device = try await Device(node, tables: ["node"])
        try await device.attach(server)
        for (id, up) in [("a", "b"), ("b", "c"), ("c", "d"), ("x", "x")] { server.write("node", id, ["up": up]) }
        try await device.weir.sync()
        #expect(try device.rows("SELECT id FROM node") == ["x"])
        server.write("node", "d", [:])
        try await device.weir.sync()
        #expect(try device.rows("SELECT id FROM node ORDER BY id") == ["a", "b", "c", "d", "x"])
    }

    @Test func aRowThatTheAppHasWrittenWithoutAParentIsParkedOnAllDevices() async throws {
        let server = ContractServer(Self.tables)
        let (device, other) = (try await device(server), try await self.device(server))
        try device.run("INSERT INTO item VALUES (1, 'A', 'none', NULL)")
        for device in [device, other] { try await device.weir.sync() }
        #expect(try await parked(device) == [Self.missing])
        #expect(try await parked(other) == [Self.missing])
    }

    /// One row beside another one, with the same key.
    @Test(arguments: ["TEXT", "INTEGER", "BLOB"]) func aRowWhoseKeyNamesItsParentWaitsForIt(type: String) async throws {
        let server = ContractServer(["user": ["name": "text"], "profile": ["bio": "text"]])
        let device = try await Device(
            """
            CREATE TABLE user (id \(type) PRIMARY KEY NOT NULL, name TEXT);
            CREATE TABLE profile (id \(type) PRIMARY KEY NOT NULL REFERENCES user (id), bio TEXT);
            CREATE TABLE seen (id); CREATE TRIGGER seen AFTER INSERT ON profile BEGIN INSERT INTO seen VALUES (NEW.id); END
            """, tables: ["user", "profile"])
        try await device.attach(server)
        let id = type == "BLOB" ? "a1a1a1a1-a1a1-a1a1-a1a1-a1a1a1a1a1a1" : "7"
        server.write("profile", id, ["bio": "B"])
        try await device.weir.sync()
        #expect(try await parked(device) == ["profile \(id): its parent is missing: id names no row of user"])
        let seen = try device.rows("SELECT id FROM seen")
        server.write("user", type == "BLOB" ? "b2b2b2b2-b2b2-b2b2-b2b2-b2b2b2b2b2b2" : "8", ["name": "other"])
        try await device.weir.sync()
        #expect(try await parked(device).count == 1)
        #expect(try device.rows("SELECT id FROM seen") == seen)
        server.write("user", id, ["name": "U"])
        try await device.weir.sync()
        #expect(try device.rows("SELECT bio FROM profile JOIN user USING (id)") == ["B"])
        #expect(try await parked(device).isEmpty)
    }
}
