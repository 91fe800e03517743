import Foundation
import Synchronization
import TestResources
import TestSignals
import Testing
import WeirClient

/// Columns and tables of the app that the server does not have, or not yet.
@Suite(.timeLimit(.minutes(2))) struct UnknownColumnsTests {
    private static let title = ["item": ["title": "text"]]
    private static let attention = SyncStatus.Attention.unknownColumns(["item": ["note"]])

    /// A device whose server has no `note`, with a row that has one.
    private func synced(_ server: ContractServer) async throws -> Device {
        let device = try await Device()
        try await device.attach(server)
        try device.run("INSERT INTO item VALUES ('a', 'A', 'kept'), ('b', 'B', NULL)")
        try await device.weir.sync()
        #expect(server.live == [#"item a {"title":"A"} 1"#, #"item b {"title":"B"} 1"#])
        return device
    }

    private func addColumn(_ server: ContractServer) {
        server.state.withLock { ($0.schemaVersion, $0.tables) = ("s2", Device.tables) }
    }

    private func batches(_ server: ContractServer) -> Int {
        server.requests.filter { $0.url.path == "/v1/sync" }.count
    }

    @Test func valuesWaitUntilTheServerHasTheColumnAndAreSentThen() async throws {
        let server = ContractServer(Self.title)
        let device = try await synced(server)
        #expect(device.weir.currentStatus.needsAttention == [Self.attention])
        // An edit of nothing else is not sent, and is not forgotten; nor is the part of one that is sent.
        try device.run("UPDATE item SET note = 'new' WHERE id = 'b'")
        let sent = batches(server)
        try await device.weir.sync()
        #expect(batches(server) == sent)
        try device.run("UPDATE item SET title = 'A2', note = 'later' WHERE id = 'a'")
        try await device.weir.sync()
        #expect(server.live == [#"item a {"title":"A2"} 2"#, #"item b {"title":"B"} 1"#])
        try await device.restart()
        try await device.attach(server)
        try await device.weir.sync()
        #expect(device.weir.currentStatus.needsAttention == [Self.attention])
        #expect(try await device.weir.pendingRows() == 0)
        addColumn(server)
        try await device.weir.sync()
        #expect(server.live == [#"item a {"note":"later","title":"A2"} 3"#, #"item b {"note":"new","title":"B"} 2"#])
        #expect(device.weir.currentStatus.needsAttention.isEmpty)
        let fresh = try await Device()
        try await fresh.attach(server)
        try await fresh.weir.sync()
        #expect(try fresh.rows() == device.rows() && fresh.states() == device.states())
    }

    /// A gateway that has yet to learn a schema version names the older one, and sends rows that have the new columns.
    @Test func valuesOfAColumnThatTheKnownSchemaLackedComeOnceItHasThem() async throws {
        let server = ContractServer(Self.title)
        let device = try await synced(server)
        server.write("item", "c", ["title": "C", "note": "theirs"])
        try await device.weir.sync()
        #expect(try device.rows().last == "c C -")
        let pulls = server.requests.count
        addColumn(server)
        try await device.weir.sync()
        #expect(try device.rows().last == "c C theirs")
        try await device.restart()
        try await device.attach(server)
        let count = server.requests.count
        #expect(count > pulls)
        try await device.weir.sync()
        #expect(server.requests.count == count + 1)
    }

    @Test func aRowThatLacksAColumnHasTheDefaultOfTheServersSchema() async throws {
        let uuid = "5e1ae1a2-0b6f-4d3c-9d2a-0123456789ab"
        let server = ContractServer([
            "item": [
                "title": "text", "note": "text", "ref": "uuid", "due": "timestamp", "tags": "json", "done": "boolean",
            ]
        ])
        server.state.withLock {
            $0.defaults = [
                "note": "server", "ref": uuid, "due": "2026-01-02T03:04:05.000000Z", "tags": ["b", "a"], "done": true,
            ]
        }
        server.write("item", "a", ["title": "A"])
        let device = try await Device(
            """
            CREATE TABLE item (id TEXT PRIMARY KEY NOT NULL, title TEXT, note TEXT NOT NULL DEFAULT 'app', ref BLOB, due DATETIME,
            tags TEXT, done BOOLEAN)
            """)
        try await device.attach(server)
        try await device.weir.sync()
        let columns = ["title", "note", "hex(ref)", "due", "tags", "done"].map { "ifnull(\($0), '-')" }
        let shown = { try device.rows("SELECT \(columns.joined(separator: " || ' ' || ")) FROM item") }
        let hex = uuid.replacing("-", with: "").uppercased()
        #expect(try shown() == [#"A server \#(hex) 2026-01-02 03:04:05.000 ["b","a"] 1"#])
        // It is what an edit was made of, and what is there again without it.
        try device.run("UPDATE item SET note = 'mine', done = NULL")
        #expect(try await device.weir.discard("item", .text("a")))
        #expect(try shown() == [#"A server \#(hex) 2026-01-02 03:04:05.000 ["b","a"] 1"#])
        // NULL that somebody has written is no default.
        server.state.withLock { _ = $0.write("item", "a", ["ref": NSNull()], device: "other") }
        try await device.weir.sync()
        #expect(try shown() == [#"A server  2026-01-02 03:04:05.000 ["b","a"] 1"#])
        #expect(try await device.weir.pendingRows() == 0)
    }

    @Test func rowsOfTheFileGetTheDefaultOfAColumnThatTheServerGetsAfterTheApp() async throws {
        let server = ContractServer(Self.title)
        let device = try await synced(server)
        server.write("item", "c", ["title": "C"])
        try await device.weir.sync()
        server.state.withLock { $0.defaults = ["note": "server"] }
        addColumn(server)
        try await device.weir.sync()
        // What the app has written itself is sent.
        #expect(try device.rows() == ["a A kept", "b B server", "c C server"])
        #expect(server.live.first == #"item a {"note":"kept","title":"A"} 2"#)
        #expect(try await device.weir.pendingRows() == 0)
        let count = server.requests.count
        try await device.weir.sync()
        #expect(server.requests.count == count + 1)
    }

    @Test func whatWaitsIsTakenBackToTheValueBeforeTheFirstChange() async throws {
        let server = ContractServer(Self.title)
        let device = try await synced(server)
        for note in ["first", "second"] {
            try device.run("UPDATE item SET note = '\(note)' WHERE id = 'b'")
            try await device.weir.sync()
        }
        #expect(try await device.weir.discard("item", .text("b")))
        #expect(try device.rows() == ["a A kept", "b B -"])
    }

    /// Under `checkBase` an edit that waits must not make later ones conflicts.
    @Test func whatWaitsIsNoEditBeneathWhichRowsAreWritten() async throws {
        let server = ContractServer(Self.title)
        server.state.withLock { $0.policy = "checkBase" }
        let device = try await synced(server)
        server.write("item", "a", ["title": "theirs"])
        try await device.weir.sync()
        try device.run("UPDATE item SET title = 'mine', note = 'mine' WHERE id = 'a'")
        try await device.weir.sync()
        #expect(server.live.first == #"item a {"title":"mine"} 3"#)
        server.write("item", "a", ["title": "theirs again"])
        server.write("item", "b", nil)
        try await device.weir.sync()
        addColumn(server)
        try await device.weir.sync()
        #expect(server.live == [#"item a {"note":"mine","title":"theirs again"} 5"#])
        #expect(try device.rows() == ["a theirs again mine"])
        #expect(try await device.weir.keptEdits().isEmpty)
        #expect(device.weir.currentStatus.needsAttention.isEmpty)
    }

    @Test func theAnswerThatBringsTheColumnDoesNotOverwriteWhatWaits() async throws {
        let server = ContractServer(Self.title)
        let device = try await synced(server)
        addColumn(server)
        server.write("item", "a", ["note": "theirs", "title": "theirs"])
        server.write("item", "b", ["note": "theirs"])
        try await device.weir.sync()
        #expect(try device.rows() == ["a theirs kept", "b B theirs"])
        #expect(server.live.first == #"item a {"note":"kept","title":"theirs"} 3"#)
    }

    @Test func aRowThatIsGoneLeavesNothingWaiting() async throws {
        let server = ContractServer(Self.title)
        let device = try await synced(server)
        try device.run("UPDATE item SET note = 'b' WHERE id = 'b'; INSERT INTO item VALUES ('c', 'C', 'c')")
        try await device.weir.sync()
        try device.run("DELETE FROM item WHERE id = 'a'; UPDATE item SET id = 'd' WHERE id = 'c'")
        server.write("item", "b", nil)
        try await device.weir.sync()
        #expect(try device.rows("SELECT id FROM weir_held") == ["d"])
        // Another row of this id has nothing of the first one's.
        server.write("item", "a", ["title": "other"])
        try await device.weir.sync()
        addColumn(server)
        try await device.weir.sync()
        #expect(server.live == [#"item a {"title":"other"} 3"#, #"item d {"note":"c","title":"C"} 2"#])
    }

    @Test func whatWaitsIsDiscardedWithTheRowsOtherChanges() async throws {
        let server = ContractServer(Device.tables)
        let device = try await Device()
        try await device.attach(server)
        try device.run("INSERT INTO item VALUES ('a', 'A', 'first'), ('b', 'B', 'first')")
        try await device.weir.sync()
        // The server gives the column up for a while.
        server.state.withLock { ($0.schemaVersion, $0.tables) = ("s0", Self.title) }
        try await device.weir.sync()
        try device.run("UPDATE item SET note = 'second'")
        try await device.weir.sync()
        #expect(device.weir.currentStatus.needsAttention == [Self.attention])
        try device.run("UPDATE item SET title = 'third', note = 'third' WHERE id = 'a'")
        #expect(try await device.weir.discard("item", .text("a")))
        #expect(try await device.weir.discard("item", .text("b")))
        #expect(try await device.weir.discard("item", .text("b")) == false)
        #expect(try device.rows() == ["a A first", "b B first"])
        addColumn(server)
        try await device.weir.sync()
        #expect(server.live.allSatisfy { $0.hasSuffix(" 1") })
        #expect(device.weir.currentStatus.needsAttention.isEmpty)
    }

    @Test func aConflictDoesNotReplaceWhatWaits() async throws {
        let server = ContractServer(Self.title)
        server.state.withLock { $0.policy = "checkBase" }
        let device = try await synced(server)
        server.write("item", "a", ["title": "theirs"])
        try device.run("UPDATE item SET title = 'mine', note = 'mine' WHERE id = 'a'")
        try await device.weir.sync()
        #expect(try device.rows().first == "a theirs mine")
        addColumn(server)
        try await device.weir.sync()
        #expect(server.live.first == #"item a {"note":"mine","title":"theirs"} 3"#)
    }

    @Test func manyRowsAreSentOnceTheServerHasTheColumn() async throws {
        let server = ContractServer(Self.title)
        let device = try await synced(server)
        try device.run(
            """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 1200)
            INSERT INTO item SELECT 'id' || i, 'title', 'note ' || i FROM n
            """)
        try await device.weir.sync()
        addColumn(server)
        try await device.weir.sync()
        try await device.weir.sync()
        #expect(server.live.filter { $0.contains(#""note":"note "#) && $0.hasSuffix(" 2") }.count == 1200)
        #expect(try await device.weir.pendingRows() == 0)
    }

    @Test func aSessionStaysDueWhileTheServerLacksATableThatHasChanges() async throws {
        let server = ContractServer(Device.tables)
        let device = try await Device(
            Device.schema + "; CREATE TABLE tag (id TEXT PRIMARY KEY NOT NULL, name TEXT)", tables: ["item", "tag"])
        try await device.attach(server)
        #expect(try await device.weir.runSession() == false)
        try device.run("INSERT INTO item VALUES ('a', 'A', NULL); INSERT INTO tag VALUES ('t', 'T')")
        #expect(try await device.weir.runSession())
        #expect(server.live == [#"item a {"note":null,"title":"A"} 1"#])
        #expect(device.weir.currentStatus.needsAttention == [.unknownTables(["tag"])])
        #expect(device.weir.currentStatus.pendingRows == 1)
        server.state.withLock { ($0.schemaVersion, $0.tables["tag"]) = ("s2", ["name": "text"]) }
        #expect(try await device.weir.runSession() == false)
        #expect(server.live.last == #"tag t {"name":"T"} 1"#)
    }

    /// What cannot be sent as it is makes a session due from time to time; only the server can end this.
    @Test func noSessionIsDueBecauseOfWhatWaits() async throws {
        let server = ContractServer(Self.title)
        let device = try await synced(server)
        try device.run("UPDATE item SET note = 'new'")
        let count = server.requests.count
        #expect(try await device.weir.runSession() == false)
        #expect(server.requests.count == count + 1)
        #expect(device.weir.currentStatus.needsAttention == [Self.attention])
        try device.run("INSERT INTO item VALUES (x'00', 'no id', NULL)")
        #expect(try await device.weir.runSession())
    }

    @Test func theOutcomeOfAValueThatWaitsForAColumnIsThatOfItsBeingSent() async throws {
        let server = ContractServer(Self.title)
        let device = try await synced(server)
        // The statements of connections that were opened before are not seen.
        StatementTrace.begin(device.folder.file()) {}
        try await device.restart()
        try await device.attach(server)
        let weir = device.weir
        let isWaiting = Signal<Void>()
        StatementTrace.begin(device.folder.file(), before: "place IS NULL AND number BETWEEN") { isWaiting.send() }
        let outcome = Task {
            defer { isWaiting.send() }
            return try await weir.outcome(of: "item", .text("a"))
        }
        try await isWaiting.nextOrCancellation()
        StatementTrace.end(device.folder.file())
        try await weir.sync()
        addColumn(server)
        try await weir.sync()
        #expect(try await outcome.value.status == .applied)
        #expect(server.live.first == #"item a {"note":"kept","title":"A"} 2"#)
        #expect(try await weir.outcome(of: "item", .text("a")).status == .unchanged)
    }
}
