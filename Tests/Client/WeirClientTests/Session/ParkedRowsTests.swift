import Foundation
import Synchronization
import TestResources
import Testing
import WeirClient

/// Rows of the server that the app's table cannot have as they are, or not yet.
@Suite struct ParkedRowsTests {
    private static let sql = """
        CREATE TABLE item (id TEXT PRIMARY KEY NOT NULL, title TEXT UNIQUE, note TEXT, local TEXT);
        CREATE TABLE child (id INTEGER PRIMARY KEY, item TEXT REFERENCES item ON DELETE CASCADE)
        """

    /// A device that has the rows `a` to `e`, whose titles are 1 to 5.
    private func synced(_ server: ContractServer) async throws -> Device {
        let device = try await Device(Self.sql)
        for (number, id) in ["a", "b", "c", "d", "e"].enumerated() {
            server.write("item", id, ["title": "\(number + 1)"])
        }
        try await device.attach(server)
        try await device.weir.sync()
        // What Weir knows nothing of.
        try device.run(
            """
            UPDATE item SET local = 'of ' || id; INSERT INTO child VALUES (1, 'a'), (2, 'b');
            """)
        try await device.weir.sync()
        #expect(try await device.weir.pendingRows() == 0)
        return device
    }

    private func expect(
        _ device: Device, _ rows: [String], _ parked: [String] = [], sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let found = try device.rows("SELECT id || title || ' ' || ifnull(local, '-') FROM item ORDER BY id")
        #expect(found == rows, sourceLocation: sourceLocation)
        #expect(try await device.weir.parkedRows().map(\.id) == parked, sourceLocation: sourceLocation)
        #expect(try await device.weir.pendingRows() == 0, sourceLocation: sourceLocation)
        #expect(try device.rows("SELECT count(*) FROM child") == ["2"], sourceLocation: sourceLocation)
    }

    @Test(arguments: [1, Applying.slice])
    func rowsThatHaveExchangedUniqueValuesAreWrittenTogether(rowsOfATransaction: Int) async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(server)
        try await device.attach(server) { $0.slice = rowsOfATransaction }
        server.write("item", "a", ["title": "2"])
        server.write("item", "b", ["title": "3"])
        server.write("item", "c", ["title": "1"])
        server.write("item", "d", ["title": "5"])
        server.write("item", "e", ["title": "4"])
        try await device.weir.sync()
        try await expect(device, ["a2 of a", "b3 of b", "c1 of c", "d5 of d", "e4 of e"])
        // And they are written to as before.
        try device.run("UPDATE item SET note = 'n' WHERE id = 'a'")
        try await device.weir.sync()
        #expect(server.live.contains { $0.hasPrefix(#"item a {"note":"n","title":"2"}"#) })
    }

    @Test func rowsThatAreMovedByOnePlaceAreWritten() async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(server)
        for (number, id) in ["a", "b", "c", "d", "e"].enumerated() {
            server.write("item", id, ["title": "\(number + 2)"])
        }
        server.write("item", "new", ["title": "1"])
        try await device.weir.sync()
        try await expect(device, ["a2 of a", "b3 of b", "c4 of c", "d5 of d", "e6 of e", "new1 -"])
    }

    @Test func aRowThatCannotTakePartInAnExchangeHoldsUpNoOther() async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(server)
        try device.run("INSERT INTO item (id, title) VALUES ('own', 'taken')")
        server.write("item", "a", ["title": "2"])
        server.write("item", "b", ["title": "1"])
        server.write("item", "c", ["title": "taken"])
        server.write("item", "d", ["title": "3"])
        try await device.weir.sync()
        // c keeps its title, which d waits for.
        try await expect(
            device, ["a2 of a", "b1 of b", "c3 of c", "d4 of d", "e5 of e", "owntaken -"], ["c", "d"])
        try device.run("UPDATE item SET title = 'free' WHERE id = 'own'")
        try await device.weir.sync()
        try await expect(
            device, ["a2 of a", "b1 of b", "ctaken of c", "d3 of d", "e5 of e", "ownfree -"])
    }

    @Test func aRowWhoseUniqueValueIsTakenIsDeletedWithItsEarlierVersion() async throws {
        let server = ContractServer(Device.tables)
        server.state.withLock { $0.policy = "checkBase" }
        let device = try await synced(server)
        try device.run("INSERT INTO item (id, title) VALUES ('own', 'taken')")
        server.write("item", "c", ["title": "taken"])
        try await device.weir.sync()
        let row = try #require(try await device.weir.parkedRows().first)
        let saved = try await device.weir.delete(row)
        #expect(saved.rows == [RowReference(table: "item", key: .text("c"))])
        try await device.weir.sync()
        try await expect(device, ["a1 of a", "b2 of b", "d4 of d", "e5 of e", "owntaken -"])
        #expect(try await saved.outcome.map(\.status) == [.applied])
        #expect(!server.live.contains { $0.hasPrefix("item c") })
    }

    /// The server does not send what a device has written on a version that it has received.
    @Test func theOtherColumnsOfAVersionThatWaitsFollowAlsoOnceAnEditIsStoredUponIt() async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(server)
        try device.run("INSERT INTO item (id, title) VALUES ('own', 'taken')")
        server.write("item", "c", ["title": "taken"])
        try await device.weir.sync()
        for note in ["first", "second"] {
            try device.run("UPDATE item SET note = '\(note)' WHERE id = 'c'")
            try await device.weir.sync()
            #expect(server.live.contains { $0.hasPrefix(#"item c {"note":"\#(note)","title":"taken"}"#) })
            try await expect(
                device, ["a1 of a", "b2 of b", "c3 of c", "d4 of d", "e5 of e", "owntaken -"], ["c"])
        }
        let waiting = try #require(try await device.weir.parkedRows().first)
        #expect(waiting.version == server.state.withLock { $0.rows["item c"]?.timeStamp })
        #expect(waiting.row.contains(#""note":"second""#) && waiting.row.contains(#""title":"taken""#))
        try device.run("UPDATE item SET title = 'free' WHERE id = 'own'")
        try await device.weir.sync()
        try await expect(
            device, ["a1 of a", "b2 of b", "ctaken of c", "d4 of d", "e5 of e", "ownfree -"])
        #expect(try device.rows("SELECT note FROM item WHERE id = 'c'") == ["second"])
    }

    @Test func anEarlierVersionThatArrivesLaterDoesNotReplaceTheOneThatWaits() async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(server)
        try device.run("INSERT INTO item (id, title) VALUES ('own', 'taken')")
        let earlier = server.write("item", "c", ["title": "earlier"])
        let version = server.write("item", "c", ["title": "taken"])
        try await device.weir.sync()
        // From a server that is behind.
        try await device.attach(
            ScriptedTransport { request, _ in
                var response = try await server.send(request)
                guard request.url.path == "/v1/sync" || request.url.path == "/v1/pull" else { return response }
                let row = """
                    {"table":"item","id":"c","syncId":"abc","knowledgeId":"other","timeStamp":\(earlier),"version":2,\
                    "deleted":false,"values":{"title":"earlier"},"writer":{"syncId":"abc","knowledgeId":"other"}}
                    """
                response.body = Array(
                    String(decoding: response.body, as: UTF8.self)
                        .replacing(#""changes":[]"#, with: #""changes":[\#(row)]"#).utf8)
                return response
            })
        try await device.weir.sync()
        #expect(try device.rows("SELECT title FROM item WHERE id = 'c'") == ["earlier"])
        #expect(try await device.weir.parkedRows().map(\.version) == [version])
        try await device.attach(server)
        try device.run("UPDATE item SET title = 'free' WHERE id = 'own'")
        try await device.weir.sync()
        #expect(try device.rows("SELECT title FROM item WHERE id = 'c'") == ["taken"])
    }

    @Test(arguments: ["lastSyncWins", "lastWriteWins", "checkBase"])
    func theVersionBeforeOneThatWaitsIsNotSentWhenTheHistoryChanges(policy: String) async throws {
        let server = ContractServer(Device.tables)
        server.state.withLock { $0.policy = policy }
        let device = try await synced(server)
        try device.run("INSERT INTO item (id, title) VALUES ('own', 'taken')")
        server.write("item", "c", ["title": "taken", "note": "theirs"])
        try await device.weir.sync()
        server.state.withLock { $0.changeHistory(to: "e2") }
        try await device.weir.sync()
        try await expect(
            device, ["a1 of a", "b2 of b", "c3 of c", "d4 of d", "e5 of e", "owntaken -"], ["c"])
        #expect(server.live.contains { $0.hasPrefix(#"item c {"note":"theirs","title":"taken"}"#) })
        #expect(try await device.weir.keptEdits().isEmpty)
        try device.run("UPDATE item SET title = 'free' WHERE id = 'own'")
        try await device.weir.sync()
        try await expect(
            device, ["a1 of a", "b2 of b", "ctaken of c", "d4 of d", "e5 of e", "ownfree -"])
    }

    @Test func aRowWithAnEditTakesNoPartInAnExchangeAndKeepsTheEdit() async throws {
        let server = ContractServer(Device.tables)
        let device = try await synced(server)
        server.write("item", "a", ["title": "2", "note": "theirs"])
        server.write("item", "b", ["title": "1"])
        // Written while the pull is under way.
        try await device.attach(device.network(server, writing: "UPDATE item SET note = 'mine' WHERE id = 'a'"))
        try await device.weir.sync()
        #expect(server.live.contains { $0.hasPrefix(#"item a {"note":"mine","title":"2"}"#) })
        try await device.weir.sync()
        try await expect(device, ["a2 of a", "b1 of b", "c3 of c", "d4 of d", "e5 of e"])
    }

    @Test func manyRowsThatStayImpossibleDelayNoOtherForLong() async throws {
        let server = ContractServer(Device.tables)
        server.state.withLock { $0.pageRows = 10_000 }
        let device = try await Device(
            "CREATE TABLE item (id TEXT PRIMARY KEY NOT NULL, title TEXT UNIQUE CHECK (title <> 'bad'), note TEXT)")
        try await device.attach(server)
        for number in 0..<2500 { server.write("item", "i\(number)", ["title": "bad"]) }
        server.write("item", "a", ["title": "taken"])
        server.write("item", "z", ["title": "taken"])
        try await device.weir.sync()
        #expect(try device.rows() == ["a taken -"])
        #expect(try await device.weir.parkedRows().count == 2501)
        // What waits behind all of them is tried with one of the next answers.
        try device.run("UPDATE item SET title = 'free'")
        for number in 1...3 {
            server.write("item", "a", ["note": "\(number)"])
            try await device.weir.sync()
        }
        #expect(try device.rows() == ["a free 3", "z taken -"])
        #expect(try await device.weir.parkedRows().count == 2500)
    }

    @Test(arguments: [true, false]) func manyRowsThatAreMovedByOnePlaceAreWritten(isForward: Bool) async throws {
        let rows = 1000
        let server = ContractServer(Device.tables)
        server.state.withLock { $0.pageRows = 10_000 }
        let device = try await Device(Self.sql)
        for number in 0..<rows { server.write("item", "i\(1000 + number)", ["title": "\(number)"]) }
        let statements = StatementCount(path: device.folder.file())
        defer { statements.stop() }
        try await device.restart()
        try await device.attach(server)
        try await device.weir.sync()
        let numbers = isForward ? Array(0..<rows) : (0..<rows).reversed()
        for number in numbers { server.write("item", "i\(1000 + number)", ["title": "\(number + 1)"]) }
        let count = try await statements.during { try await device.weir.sync() }
        #expect(count < 100 * rows)
        #expect(try await device.weir.parkedRows().isEmpty)
        #expect(
            try device.rows("SELECT count(*) FROM item WHERE title = substr(id, 2) - 999") == ["\(rows)"])
    }
}
