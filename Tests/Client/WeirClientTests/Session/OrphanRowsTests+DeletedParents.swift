import Synchronization
import TestResources
import Testing
import WeirClient

/// Parents that are deleted.
extension OrphanRowsTests {
    /// A device that has a list with an item and its mark, and whose user adds another item while the list is deleted elsewhere.
    private func withChild(
        _ server: ContractServer, _ sql: String, orphans: OrphanPolicy = .park, slice: Int = 250
    ) async throws -> Device {
        server.write("list", "l", ["name": "L"])
        server.write("item", "1", ["title": "A", "list": "l"])
        server.write("mark", "m", ["item": "1"])
        let device = try await device(server, orphans: orphans, slice: slice)
        try await device.weir.sync()
        try device.run(sql)
        server.write("list", "l", nil)
        return device
    }

    @Test(arguments: [1, 250]) func childrenOfADeletedParentAreParkedWithTheirChildren(slice: Int) async throws {
        let server = ContractServer(Self.tables)
        let device = try await withChild(server, "SELECT 1", slice: slice)
        try await device.weir.sync()
        #expect(try items(device).isEmpty)
        #expect(try await parked(device).count == 2)
        // Nothing is deleted at the server.
        #expect(server.live.count == 2)
        #expect(try await device.weir.pendingRows() == 0)
        server.write("list", "l", ["name": "again"])
        try await device.weir.sync()
        #expect(try items(device) == ["1 A l"])
        #expect(try device.rows("SELECT id || item FROM mark") == ["m1"])
        #expect(try violations(device) == 0)
    }

    @Test func aChildThatWasAddedMeanwhileIsSentBeforeItIsParked() async throws {
        let server = ContractServer(Self.tables)
        let device = try await withChild(server, "INSERT INTO item VALUES (2, 'mine', 'l', NULL)")
        // It stays while it is pending.
        try await attach(device, FaultyTransport(server, .lostRequest, at: 1))
        try await device.pull(server)
        #expect(try items(device) == ["2 mine l"])
        try await device.weir.sync()
        #expect(server.live.contains(#"item 2 {"list":"l","title":"mine"} 1"#))
        #expect(try items(device).isEmpty)
        #expect(try await parked(device).count == 3)
        #expect(try await device.weir.pendingRows() == 0)
        // Another device has the same.
        let other = try await self.device(server)
        try await other.weir.sync()
        #expect(try await parked(other) == parked(device))
        #expect(try items(other).isEmpty)
    }

    @Test func anEditOfARowWhoseParentIsDeletedMeanwhileIsSentBeforeTheRowIsParked() async throws {
        let server = ContractServer(Self.tables)
        let device = try await withChild(server, "UPDATE item SET title = 'mine'")
        try await device.pull(server)
        #expect(try items(device) == ["1 mine l"])
        try await device.weir.sync()
        #expect(server.live.contains(#"item 1 {"list":"l","title":"mine"} 2"#))
        #expect(try items(device).isEmpty)
        #expect(try await device.weir.pendingRows() == 0)
    }

    @Test(arguments: [1, 250]) func orphansAreDeletedEverywhereIfTheAppSaysSo(slice: Int) async throws {
        let server = ContractServer(Self.tables)
        let sql = "INSERT INTO item VALUES (2, 'mine', 'l', NULL)"
        let device = try await withChild(server, sql, orphans: .delete, slice: slice)
        try await device.weir.sync()
        try await device.weir.sync()
        #expect(try items(device).isEmpty)
        #expect(try await parked(device).isEmpty)
        #expect(server.live.isEmpty)
        #expect(try await device.weir.pendingRows() == 0)
    }

    @Test func orphansStayIfTheAppSaysSo() async throws {
        let server = ContractServer(Self.tables)
        let device = try await withChild(server, "SELECT 1", orphans: .keep)
        try await device.weir.sync()
        #expect(try items(device) == ["1 A l"])
        #expect(server.live.count == 2)
        #expect(try device.rows("SELECT tbl FROM weir_orphan UNION ALL SELECT tbl FROM weir_removed").isEmpty)
    }

    @Test func valuesThatTheServerDoesNotHaveKeepARowInTheTable() async throws {
        let server = ContractServer(Self.tables)
        let device = try await withChild(server, "UPDATE item SET local = 'of this device'")
        try await device.weir.sync()
        #expect(try items(device) == ["1 A l"])
        #expect(try await parked(device).isEmpty)
    }

    @Test func childrenByOtherUniqueColumnsAreFound() async throws {
        let sql = """
            CREATE TABLE list (id TEXT PRIMARY KEY NOT NULL, name TEXT UNIQUE COLLATE NOCASE);
            CREATE TABLE item (id INTEGER PRIMARY KEY, title TEXT, list TEXT REFERENCES list (name));
            CREATE TABLE mark (id TEXT PRIMARY KEY NOT NULL, item TEXT)
            """
        let server = ContractServer(Self.tables)
        let device = try await device(server, sql: sql)
        server.write("list", "l", ["name": "Work"])
        server.write("item", "1", ["title": "A", "list": "WORK"])
        try await device.weir.sync()
        #expect(try items(device) == ["1 A WORK"])
        server.write("list", "l", nil)
        try await device.weir.sync()
        #expect(try await parked(device) == [Self.missing])
        server.write("list", "k", ["name": "work"])
        try await device.weir.sync()
        #expect(try items(device) == ["1 A WORK"])
    }

    @Test func aNewerVersionThatWaitsIsNotReplacedByTheOneInTheTable() async throws {
        let sql = """
            CREATE TABLE list (id TEXT PRIMARY KEY NOT NULL, name TEXT);
            CREATE TABLE item (id INTEGER PRIMARY KEY, title TEXT UNIQUE, list TEXT REFERENCES list);
            CREATE TABLE mark (id TEXT PRIMARY KEY NOT NULL, item TEXT)
            """
        let server = ContractServer(Self.tables)
        let device = try await device(server, sql: sql)
        server.write("list", "l", ["name": "L"])
        server.write("item", "1", ["title": "old", "list": "l"])
        try await device.weir.sync()
        try device.run("INSERT INTO item VALUES (9, 'new', NULL)")
        server.write("item", "1", ["title": "new"])
        try await device.weir.sync()
        #expect(try await parked(device).count == 1)
        server.write("list", "l", nil)
        try await device.weir.sync()
        server.write("list", "l", ["name": "L"])
        try device.run("UPDATE item SET title = 'free' WHERE id = 9")
        try await device.weir.sync()
        try await device.weir.sync()
        #expect(try items(device) == ["1 new l", "9 free -"])
        #expect(try await parked(device).isEmpty)
    }

    @Test func aRowThatNamesItselfComesBackWithItsParent() async throws {
        let sql = """
            CREATE TABLE list (id TEXT PRIMARY KEY NOT NULL, name TEXT);
            CREATE TABLE item (id INTEGER PRIMARY KEY, title INTEGER REFERENCES item, list TEXT REFERENCES list);
            CREATE TABLE mark (id TEXT PRIMARY KEY NOT NULL, item TEXT)
            """
        let server = ContractServer([
            "list": ["name": "text"], "item": ["title": "integer", "list": "text"], "mark": ["item": "text"],
        ])
        let device = try await device(server, sql: sql)
        try device.run("INSERT INTO list VALUES ('l', 'L'); INSERT INTO item VALUES (1, 1, 'l')")
        try await device.weir.sync()
        server.write("list", "l", nil)
        try await device.weir.sync()
        #expect(try await parked(device) == [Self.missing])
        server.write("list", "l", ["name": "L"])
        try await device.weir.sync()
        #expect(try items(device) == ["1 1 l"])
    }

    @Test func orphansOfAnOwnerWhoseRowsMayOnlyBeReadAreNotDeleted() async throws {
        let server = ContractServer(Self.tables)
        server.state.withLock { ($0.links, $0.linkAccess) = (["xyz"], .read) }
        let device = try await device(server, orphans: .delete)
        server.write("item", "1", ["title": "A", "list": "none"], owner: "xyz")
        for _ in 0..<2 { try await device.weir.sync() }
        #expect(try items(device) == ["1 A none"])
        #expect(try await device.weir.pendingRows() == 0)
        #expect(try await device.weir.keptEdits().isEmpty)
    }

    @Test func childrenOfAParentWhoseKeyHasACollationAreFound() async throws {
        let sql = """
            CREATE TABLE list (id TEXT PRIMARY KEY COLLATE NOCASE NOT NULL, name TEXT);
            CREATE TABLE item (id INTEGER PRIMARY KEY, title TEXT, list TEXT REFERENCES list);
            CREATE TABLE mark (id TEXT PRIMARY KEY NOT NULL, item TEXT)
            """
        let server = ContractServer(Self.tables)
        let device = try await device(server, sql: sql)
        server.write("list", "l", ["name": "L"])
        server.write("item", "1", ["title": "A", "list": "L"])
        try await device.weir.sync()
        #expect(try items(device) == ["1 A L"])
        server.write("list", "l", nil)
        try await device.weir.sync()
        #expect(try await parked(device) == [Self.missing])
    }

    @Test func aDeletedParentWithManyChildrenIsHandledInSlices() async throws {
        let server = ContractServer(Self.tables)
        server.write("list", "l", ["name": "L"])
        for number in 1...3000 { server.write("item", "\(number)", ["title": "A", "list": "l"]) }
        let device = try await device(server)
        try await device.weir.sync()
        server.write("list", "l", nil)
        try await device.weir.sync()
        #expect(try items(device).isEmpty)
        #expect(try await parked(device).count == 3000)
        #expect(device.weir.currentStatus.isComplete)
    }

    @Test(arguments: ["UPDATE item SET list = 'm' WHERE id = 1", "DELETE FROM item WHERE id = 1"])
    func aRowThatIsTakenBackToAParentThatWasDeletedMeanwhileIsParked(sql: String) async throws {
        let server = ContractServer(Self.tables)
        server.write("list", "m", ["name": "M"])
        let device = try await withChild(server, "SELECT 1")
        try await device.pull(server, beneath: sql)
        #expect(try await device.weir.discard("item", .integer(1)))
        #expect(try items(device) == ["1 A l"])
        server.write("list", "m", ["name": "M2"])
        try await device.weir.sync()
        #expect(try items(device).isEmpty)
        #expect(try await parked(device).first == Self.missing)
        #expect(try await device.weir.pendingRows() == 0)
        #expect(try violations(device) == 0)
        server.write("list", "l", ["name": "again"])
        try await device.weir.sync()
        #expect(try items(device) == ["1 A l"])
        #expect(try await parked(device).isEmpty)
    }
}
