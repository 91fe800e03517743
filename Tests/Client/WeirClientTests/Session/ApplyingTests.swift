import Foundation
import Synchronization
import TestResources
import Testing
import WeirClient

/// How answers are applied beneath what the app has written.
@Suite struct ApplyingTests {
    func synced(_ server: ContractServer, _ sql: String = Device.schema) async throws -> Device {
        let device = try await Device(sql)
        try await device.attach(server)
        try device.run("INSERT INTO item VALUES ('a', 'A', 'n')")
        try await device.weir.sync()
        return device
    }

    @Test func aPullDoesNotWaitForPendingEditsAndLeavesTheirColumns() async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(server)
        try device.run("UPDATE item SET title = 'mine'; INSERT INTO item VALUES ('b', 'new', NULL)")
        server.write("item", "a", ["title": "theirs", "note": "theirs"])
        try await device.pull(server)
        #expect(try device.rows() == ["a mine theirs", "b new -"])
        try await device.weir.sync()
        #expect(
            server.live == [#"item a {"note":"theirs","title":"mine"} 3"#, #"item b {"note":null,"title":"new"} 1"#])
        #expect(try device.rows() == ["a mine theirs", "b new -"])
    }

    /// Syncs, and writes with another connection before the first answer arrives.
    private func sync(_ device: Device, _ server: ContractServer, writing sql: String) async throws -> [String] {
        let transport = device.network(server, writing: sql)
        try await device.attach(transport)
        try await device.weir.sync()
        #expect(try await device.weir.pendingRows() == 0)
        return transport.requests.map(\.url.path)
    }

    @Test func whatIsWrittenWhileAPullIsUnderWayAndIsAsTheServerHasItIsNotSent() async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(server)
        server.write("item", "a", ["title": "theirs"])
        let sent = try await sync(device, server, writing: "UPDATE item SET title = 'theirs'")
        #expect(sent == ["/v1/pull"])
        #expect(try device.rows() == ["a theirs n"])
    }

    @Test func aStatementThatHasIgnoredARowDoesNotKeepItFromBeingDeleted() async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(server)
        server.write("item", "a", nil)
        let sent = try await sync(
            device, server, writing: "INSERT OR IGNORE INTO item VALUES ('a', 'ignored', NULL)")
        #expect(sent == ["/v1/pull"])
        #expect(try device.rows().isEmpty)
        #expect(server.live.isEmpty)
    }

    @Test func aRepeatedOutcomeDoesNotCoverWhatWasWrittenSince() async throws {
        for isDeleted in [false, true] {
            let server = ContractServer(Device.tables)
            let device = try await synced(server)
            try device.run("UPDATE item SET title = 'first'")
            try await device.sync(with: server, losing: .lostAnswer)
            // Applied; then another device writes, and the pull comes before the repeated outcome.
            server.write("item", "a", isDeleted ? nil : ["title": "second"])
            try await device.pull(server)
            #expect(try device.rows() == ["a first n"])
            try await device.weir.sync()
            #expect(try device.rows() == (isDeleted ? [] : ["a second n"]))
            #expect(server.live == (isDeleted ? [] : [#"item a {"note":"n","title":"second"} 3"#]))
            #expect(try await device.weir.pendingRows() == 0)
        }
    }

    @Test func whatTheServerDoesNotStoreIsKeptAsideAndTheRowIsTheServers() async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(server)
        try device.run("INSERT INTO item VALUES ('gone', 'G', NULL), ('c', 'C', NULL)")
        try await device.weir.sync()
        server.state.withLock { $0.policy = "checkBase" }
        server.write("item", "a", ["title": "theirs"])
        server.write("item", "gone", ["title": "changed"])
        server.write("item", "c", nil)
        try device.run(
            """
            UPDATE item SET title = 'mine', note = 'my note' WHERE id = 'a';
            DELETE FROM item WHERE id = 'gone'; UPDATE item SET title = 'late' WHERE id = 'c'
            """)
        try await device.weir.sync()
        #expect(try device.rows() == ["a theirs n", "gone changed -"])
        #expect(server.live.count == 2)
        let kept = try await device.weir.keptEdits()
        #expect(kept.map(\.code) == ["conflict", "conflict", "conflict"])
        let edit = try #require(kept.first { $0.key == .text("a") })
        #expect(edit.table == "item")
        #expect(edit.change.contains(#""values":{"title":"mine","note":"my note"}"#))
        #expect(device.weir.currentStatus.needsAttention == [.keptEdits(3)])
        try await device.weir.removeKeptEdits(through: kept[0].number)
        #expect(try await device.weir.keptEdits().count == 2)
        try await device.weir.removeKeptEdits(through: kept[2].number)
        #expect(device.weir.currentStatus.needsAttention.isEmpty)
        // What the user writes then is based on the server's row.
        try device.run("UPDATE item SET title = 'mine again' WHERE id = 'a'")
        try await device.weir.sync()
        #expect(server.live.contains(#"item a {"note":"n","title":"mine again"} 3"#))
        #expect(try await device.weir.keptEdits().isEmpty)
    }

    /// A key change is an insertion and a deletion; the deletion alone would remove the row.
    @Test func aRowWhoseNewKeyIsTakenStaysUnderItsOldOne() async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(server)
        server.state.withLock { $0.policy = "checkBase" }
        server.write("item", "z", ["title": "theirs", "note": "t"])
        try device.run("UPDATE item SET id = 'z', title = 'mine' WHERE id = 'a'")
        try await device.weir.sync()
        #expect(try device.rows() == ["a A n", "z theirs t"])
        #expect(server.live == [#"item a {"note":"n","title":"A"} 1"#, #"item z {"note":"t","title":"theirs"} 1"#])
        let kept = try await device.weir.keptEdits()
        #expect(kept.map { "\($0.code) \($0.key)" }.sorted() == ["batch_aborted 'a'", "conflict 'z'"])
        #expect(kept.contains { $0.change.contains("mine") })
        #expect(try await device.weir.pendingRows() == 0)
    }

    @Test func anEditOfARowThatIsDeletedMeanwhileFollowsTheServersDecision() async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(server)
        try device.run("UPDATE item SET title = 'late'")
        server.write("item", "a", nil)
        try await device.pull(server)
        // Not before the outcome.
        #expect(try device.rows() == ["a late n"])
        try await device.weir.sync()
        #expect(server.live.isEmpty)
        #expect(try device.rows().isEmpty)
        // An insertion that knows of the deletion revives the row.
        try device.run("INSERT INTO item VALUES ('a', 'again', NULL)")
        try await device.weir.sync()
        #expect(server.live.count == 1)
    }

    @Test(arguments: [
        ("INTEGER PRIMARY KEY", "7", ["007", "+7", "7.0", "seven"]),
        (
            "BLOB PRIMARY KEY", "0a112233-4455-6677-8899-aabbccddeeff",
            ["0A112233-4455-6677-8899-AABBCCDDEEFF", "0a112233445566778899aabbccddeeff", "x"]
        ),
    ]) func aRowWhoseIdNoKeyIsSpelledLikeWaits(type: String, id: String, others: [String]) async throws {
        let server = ContractServer(Device.tables)
        let device = try await Device("CREATE TABLE item (id \(type), title TEXT, note TEXT)")
        try await device.attach(server)
        for other in [id] + others { server.write("item", other, ["title": other]) }
        try await device.weir.sync()
        #expect(try device.rows("SELECT title FROM item") == [id])
        #expect(try await device.weir.parkedRows().map(\.id).sorted() == others.sorted())
        // An edit is one of the row that has this id.
        try device.run("UPDATE item SET title = 'mine'")
        try await device.weir.sync()
        #expect(server.live.filter { $0.contains("mine") } == [#"item \#(id) {"title":"mine"} 2"#])
    }

    @Test func newRowsAreSpelledAsTheAppSpellsItsRows() async throws {
        let server = ContractServer(["item": ["title": "timestamp", "note": "uuid"]])
        let device = try await Device("CREATE TABLE item (id TEXT PRIMARY KEY NOT NULL, title TEXT, note)")
        try await device.attach(server)
        let (time, uuid) = ("2026-02-03T04:05:06.789000Z", "0a112233-4455-6677-8899-aabbccddeeff")
        server.write("item", "a", ["title": time, "note": uuid])
        try await device.weir.sync()
        // Without an example, as the columns are declared.
        #expect(
            try device.rows("SELECT title || ' ' || hex(note) FROM item") == [
                "\(time) 0A11223344556677"
                    + "8899AABBCCDDEEFF"
            ])
        try device.run(
            "DELETE FROM item; INSERT INTO item VALUES ('b', NULL, NULL), ('c', '2026-01-01 00:00:00.000', 'X')")
        try device.run("UPDATE item SET note = upper('\(uuid)') WHERE id = 'c'")
        server.write("item", "d", ["title": time, "note": uuid])
        try await device.weir.sync()
        let shown = try device.rows("SELECT title || ' ' || note FROM item WHERE id = 'd'")
        #expect(shown == ["2026-02-03 04:05:06.789 \(uuid.uppercased())"])
    }

    @Test func aRowWhoseUniqueValueIsTakenWaitsAndFailsNothing() async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(
            server, "CREATE TABLE item (id TEXT PRIMARY KEY NOT NULL, title TEXT UNIQUE, note TEXT)")
        server.write("item", "b", ["title": "A"])
        server.write("item", "c", ["title": "C"])
        try await device.weir.sync()
        #expect(try device.rows() == ["a A n", "c C -"])
        let parked = try await device.weir.parkedRows()
        #expect(parked.map(\.id) == ["b"])
        #expect(parked.first?.reason.contains("UNIQUE") == true)
        #expect(device.weir.currentStatus.needsAttention == [.parkedRows(1)])
        // A newer version of it waits in its place.
        server.write("item", "b", ["note": "newer"])
        try await device.weir.sync()
        #expect(try await device.weir.parkedRows().count == 1)
        try device.run("UPDATE item SET title = 'free' WHERE id = 'a'")
        try await device.weir.sync()
        #expect(try device.rows() == ["a free n", "b A newer", "c C -"])
        #expect(device.weir.currentStatus.needsAttention.isEmpty)
    }

    @Test func aTableThatTheAppDoesNotHaveYetAppearsWhenItDoes() async throws {
        let server = ContractServer(Device.tables.merging(["tag": ["name": "text"]]) { $1 })
        let device = try await synced(server)
        server.write("tag", "t", ["name": "old"])
        server.write("tag", "t", ["name": "new"])
        try await device.weir.sync()
        #expect(try await device.weir.parkedRows().map(\.table) == ["tag"])
        // Nobody has to do anything about it.
        #expect(device.weir.currentStatus.needsAttention.isEmpty)
        await device.weir.close()
        try device.run("CREATE TABLE tag (id TEXT PRIMARY KEY, name TEXT)")
        let updated = try await Weir.open(URL(fileURLWithPath: device.folder.file()), tables: ["item", "tag"])
        try await updated.attach("abc", server: Device.url, options: Device.options(server))
        try await updated.sync()
        #expect(try device.rows("SELECT id || ' ' || name FROM tag") == ["t new"])
        #expect(try await updated.parkedRows().isEmpty)
        #expect(try await updated.pendingRows() == 0)
    }

    @Test func aColumnThatTheAppAddsTakesTheServersValues() async throws {
        let server = ContractServer(Device.tables)
        let device = try await Device("CREATE TABLE item (id TEXT PRIMARY KEY NOT NULL, title TEXT)")
        try await device.attach(server)
        for id in ["a", "b"] { server.write("item", id, ["title": id, "note": "n \(id)"]) }
        try await device.weir.sync()
        await device.weir.close()
        try device.run("ALTER TABLE item ADD COLUMN note TEXT")
        try await device.restart()
        try device.run("UPDATE item SET note = 'mine' WHERE id = 'b'")
        try await device.attach(server)
        try await device.weir.sync()
        #expect(try device.rows() == ["a a n a", "b b mine"])
        #expect(server.live.contains { $0.contains("mine") })
        #expect(try await device.weir.pendingRows() == 0)
    }

    @Test func aColumnThatTheServersRowDoesNotHaveIsNullOrItsDefault() async throws {
        let server = ContractServer(["item": ["title": "text", "note": "text", "color": "text", "size": "integer"]])
        server.state.withLock { $0.policy = "checkBase" }
        server.write("item", "a", ["title": "theirs"])
        let device = try await Device(
            """
            CREATE TABLE item (id TEXT PRIMARY KEY NOT NULL, title TEXT, note TEXT, color TEXT NOT NULL DEFAULT ('re' || 'd'),
            size INTEGER NOT NULL DEFAULT 3)
            """)
        try await device.attach(server)
        // The creation is a conflict, since the app has not seen the row.
        try device.run("INSERT INTO item VALUES ('a', 'mine', 'mine', 'blue', 7)")
        try await device.weir.sync()
        let rows = {
            try device.rows("SELECT title || ' ' || ifnull(note, '-') || ' ' || color || ' ' || size FROM item")
        }
        #expect(try rows() == ["theirs - red 3"])
        let edit = try #require(try await device.weir.keptEdits().first)
        #expect(edit.server == ["title": .text("theirs"), "note": .null, "color": .text("red"), "size": .integer(3)])
        #expect(edit.conflicting == ["title", "note", "color", "size"])
    }

    @Test func columnsThatArePulledUnchangedAreNotWritten() async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(
            server,
            Device.schema + """
                ; CREATE TABLE fired (name TEXT);
                CREATE TRIGGER on_title AFTER UPDATE OF title ON item BEGIN INSERT INTO fired VALUES ('title'); END;
                CREATE TRIGGER on_note AFTER UPDATE OF note ON item BEGIN INSERT INTO fired VALUES ('note'); END
                """)
        server.write("item", "a", ["title": "theirs", "note": "n"])
        try await device.weir.sync()
        #expect(try device.rows() == ["a theirs n"])
        #expect(try device.rows("SELECT name FROM fired") == ["title"])
        server.write("item", "a", ["title": "theirs", "note": "n"])
        try await device.weir.sync()
        #expect(try device.rows("SELECT name FROM fired") == ["title"])
        #expect(try device.rows("SELECT time_stamp FROM weir_row_1") == ["103"])
    }

    @Test func aRowOfAnotherTypeThanTheSchemaSaysWaits() async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(server)
        let transport = ScriptedTransport { request, _ in
            var response = try await server.send(request)
            let text = String(decoding: response.body, as: UTF8.self)
            response.body = Array(text.replacing(#""title":"B""#, with: #""title":{"is":"no text"}"#).utf8)
            return response
        }
        try await device.attach(transport)
        server.write("item", "b", ["title": "B"])
        server.write("item", "c", ["title": "C"])
        try await device.weir.sync()
        #expect(try device.rows() == ["a A n", "c C -"])
        #expect(try await device.weir.parkedRows().map(\.id) == ["b"])
    }

    @Test func rowsOfALinkedOwnerAreChangedAsTheOwnersAndRemovedWhenItIsRevoked() async throws {
        let server = ContractServer(Device.tables)
        server.state.withLock { $0.links = ["friend"] }
        let device = try await synced(server)
        server.write("item", "x", ["title": "theirs"], owner: "friend")
        server.write("item", "y", ["title": "theirs"], owner: "friend")
        try await device.weir.sync()
        try device.run("UPDATE item SET title = 'edited' WHERE id = 'x'; DELETE FROM item WHERE id = 'y'")
        try await device.weir.sync()
        #expect(server.live.contains { $0.hasPrefix("item x") && $0.contains("edited") })
        #expect(server.live.count == 2)
        #expect(try await device.weir.keptEdits().isEmpty)
        // The owner ends it while an edit is pending.
        try device.run("UPDATE item SET note = 'unsent' WHERE id = 'x'")
        server.state.withLock { $0.links = [] }
        try await device.weir.sync()
        #expect(try device.rows() == ["a A n"])
        let kept = try await device.weir.keptEdits()
        #expect(kept.count == 1 && ["revoked", "not_granted"].contains(kept.first?.code))
        #expect(kept.first?.change.contains("unsent") == true)
        #expect(try await device.weir.pendingRows() == 0)
        #expect(try device.states() == ["a 101 0"])
        // And begins it again.
        server.state.withLock { $0.links = ["friend"] }
        try await device.weir.sync()
        #expect(try device.rows() == ["a A n", "x edited -"])
    }
}
