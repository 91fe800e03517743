import Foundation
import Synchronization
import TestResources
import Testing
import WeirClient

/// The view with the sync state of each row of a table.
@Suite(.timeLimit(.minutes(2))) struct StateViewTests {
    private static let states = "SELECT id || ' ' || state || ' ' || is_seen FROM weir_item_state ORDER BY id"

    @Test func aRowIsPendingThenSentThenOrderedThenSeen() async throws {
        let server = ContractServer(Device.tables)
        let device = try await Device()
        try await device.attach(server)
        try device.run("INSERT INTO item VALUES ('a', 'A', 'n')")
        // In the log alone.
        #expect(try device.rows(Self.states) == ["a pending 0"])
        #expect(try await device.weir.state(of: "item", .text("a"))?.stage == .local)
        #expect(try await device.weir.state(of: "item", .text("b")) == nil)
        _ = try await device.weir.pendingRows()
        #expect(try device.rows(Self.states) == ["a pending 0"])
        // Each state as another connection sees it, at the moment of a request.
        let path = device.folder.file()
        try await device.attach(
            ScriptedTransport { request, _ in
                if request.url.path == "/v1/sync" {
                    let database = try Database(path: path)
                    let states = try database.map(Self.states) { $0.string(at: 0) }
                    #expect(states == ["a sent 0"])
                    database.close()
                }
                var response = try await server.send(request)
                // The outcome without the pull that follows it.
                let text = String(decoding: response.body, as: UTF8.self)
                guard request.url.path == "/v1/sync",
                    var json = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
                else { return response }
                json["changes"] = [Any]()
                json["knowledge"] = [Any]()
                json["hasMore"] = true
                response.body = Array(try JSONSerialization.data(withJSONObject: json))
                withUnsafeCurrentTask { $0?.cancel() }
                return response
            })
        await #expect(throws: CancellationError.self) { try await device.weir.sync() }
        #expect(try device.rows(Self.states) == ["a synced 0"])
        #expect(try await device.weir.state(of: "item", .text("a"))?.stage == .ordered)
        try await device.attach(server)
        try await device.weir.sync()
        let state = try #require(try await device.weir.state(of: "item", .text("a")))
        #expect(state.state == .synced && state.stage == .seen && state.timeStamp == 101)
        let name = try device.rows("SELECT value FROM weir_meta WHERE key = 'knowledge_id'")
        #expect(state.writtenBy == name.first && state.writtenByOwner == "abc")
        server.state.withLock { $0.timeStamp = 1_767_225_600_123_456 }
        server.write("item", "a", ["title": "theirs"], device: "laptop")
        try await device.weir.sync()
        let theirs = try await device.weir.state(of: "item", .text("a"))
        #expect(theirs?.writtenBy == "laptop" && theirs?.writtenAt == "2026-01-01T00:00:00.123Z")
        try device.run("DELETE FROM item")
        #expect(try device.rows(Self.states) == ["a pending 0"])
        try await device.weir.sync()
        #expect(try device.rows(Self.states).isEmpty)
    }

    @Test func conflictsRefusalsAndParkedRowsAreShownAndObserved() async throws {
        let server = ContractServer(Device.tables)
        server.state.withLock { ($0.policy, $0.refusedText) = ("checkBase", "bad") }
        let device = try await Device("CREATE TABLE item (id TEXT PRIMARY KEY NOT NULL, title TEXT UNIQUE, note TEXT)")
        try await device.attach(server)
        try device.run("INSERT INTO item VALUES ('a', 'A', NULL), ('b', 'B', NULL), ('c', 'C', NULL), ('d', 'D', NULL)")
        try await device.weir.sync()
        var observed = device.weir.observe("SELECT id, state FROM weir_item_state WHERE state <> 'synced' ORDER BY id")
            .makeAsyncIterator()
        #expect(try await observed.next() == [])
        server.write("item", "a", ["title": "theirs"])
        server.write("item", "c", ["title": "D"])
        server.write("item", "p", ["title": "D"])
        try device.run("UPDATE item SET title = 'mine' WHERE id = 'a'; UPDATE item SET title = 'bad' WHERE id = 'b'")
        try device.run("INSERT INTO item VALUES ('r', 'bad too', 'bad')")
        try await device.weir.sync()
        let expected = ["a conflict", "b refused", "c parked", "p parked", "r refused"]
        let query = "SELECT id || ' ' || state FROM weir_item_state WHERE state <> 'synced' ORDER BY id"
        #expect(try device.rows(query) == expected)
        var last: [ObservedRow]?
        while last?.count != 5 { last = try await observed.next() }
        // What is to be decided stays first where the row is changed again.
        try device.run("UPDATE item SET note = 'x' WHERE id IN ('a', 'd')")
        let flags =
            "SELECT id || ' ' || state || ' ' || is_pending || ' ' || ifnull(code, '-') FROM weir_item_state WHERE id IN ('a', 'd')"
        #expect(try device.rows(flags).sorted() == ["a conflict 1 conflict", "d pending 1 -"])
        let kept = try await device.weir.keptEdits()
        #expect(
            try await device.weir.state(of: "item", .text("a"))?.kept == kept.first { $0.key == .text("a") }?.number)
        for edit in kept { try await device.weir.resolve(edit, .acceptServer) }
        try await device.weir.sync()
        #expect(try device.rows(query) == ["c parked", "p parked"])
        await device.weir.close()
    }

    @Test func rowsOfEveryKindOfKeyAreFound() async throws {
        let server = ContractServer(["item": ["title": "text"], "pic": ["title": "text"]])
        let device = try await Device(
            """
            CREATE TABLE item (id INTEGER PRIMARY KEY, title TEXT UNIQUE);
            CREATE TABLE pic (id BLOB PRIMARY KEY NOT NULL, title TEXT UNIQUE)
            """, tables: ["item", "pic"])
        try await device.attach(server)
        let uuid = "0a000000-0000-0000-0000-00000000000"
        for (table, ids) in [("item", ["1", "2"]), ("pic", ["\(uuid)1", "\(uuid)2"])] {
            for id in ids { server.write(table, id, ["title": "same"]) }
        }
        try await device.weir.sync()
        for (table, key) in [("item", "id"), ("pic", "hex(id)")] {
            let rows = try device.rows(
                "SELECT \(key) || s.state FROM \(table) JOIN weir_\(table)_state AS s USING (id) UNION ALL "
                    + "SELECT \(key) || state FROM weir_\(table)_state WHERE state = 'parked' ORDER BY 1")
            #expect(rows.count == 2 && rows[0].hasSuffix("synced") && rows[1].hasSuffix("parked"), "\(rows)")
        }
    }

    @Test func aMigrationOfTheAppsFindsNothingInItsWay() async throws {
        let server = ContractServer(Device.tables)
        let device = try await Device(
            Device.schema + "; CREATE TABLE other (id TEXT PRIMARY KEY)", tables: ["item", "other"])
        try await device.attach(server)
        try device.run("INSERT INTO item VALUES ('a', 'A', 'n')")
        try await device.weir.sync()
        await device.weir.close()
        // The twelve steps, without Weir's knowing.
        try device.run(
            """
            BEGIN; CREATE TABLE new (id TEXT PRIMARY KEY NOT NULL, title TEXT, note TEXT, more TEXT);
            INSERT INTO new (id, title, note) SELECT id, title, note FROM item; DROP TABLE item;
            ALTER TABLE new RENAME TO item; COMMIT
            """)
        try await device.restart()
        #expect(try device.rows("SELECT state FROM weir_item_state") == ["synced"])
        await device.weir.close()
        let migrated = try await Weir.migrate(URL(fileURLWithPath: device.folder.file()), tables: ["thing", "item"]) {
            try device.run(
                """
                ALTER TABLE item DROP COLUMN note; ALTER TABLE item RENAME TO thing; ALTER TABLE other RENAME TO item
                """)
        }
        #expect(try device.rows("SELECT id || state FROM weir_thing_state") == ["asynced"])
        #expect(try device.rows("SELECT id FROM weir_item_state").isEmpty)
        #expect(try device.rows("SELECT count(*) FROM sqlite_schema WHERE type = 'view'") == ["2"])
        await migrated.close()
        // A table that is not listed any more has none, and an opening that finds all as it was writes nothing.
        let older = try await Weir.open(URL(fileURLWithPath: device.folder.file()), tables: ["thing"])
        #expect(try device.rows("SELECT name FROM sqlite_schema WHERE type = 'view'") == ["weir_thing_state"])
        await older.close()
        let version = try device.rows("PRAGMA schema_version")
        let again = try await Weir.open(URL(fileURLWithPath: device.folder.file()), tables: ["thing"])
        #expect(try device.rows("PRAGMA schema_version") == version)
        await again.close()
    }

    @Test func aLookUpReadsNoRowsButThoseThatItNames() async throws {
        let device = try await Device()
        let queries = [
            "SELECT state FROM weir_item_state WHERE id = 'a'",
            "SELECT id, (SELECT state FROM weir_item_state AS s WHERE s.id = item.id) FROM item WHERE id > 'a'",
            "SELECT item.id, s.state FROM item JOIN weir_item_state AS s ON s.id = item.id WHERE item.id = 'a'",
        ]
        for query in queries {
            let plan = try device.database.map("EXPLAIN QUERY PLAN \(query)") { $0.string(at: 3) }
            #expect(!plan.contains { $0.hasPrefix("SCAN r") || $0.contains("MATERIALIZE weir_item_state") }, "\(plan)")
        }
    }
}
