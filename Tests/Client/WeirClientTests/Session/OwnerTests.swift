import Foundation
import Synchronization
import Testing
import WeirClient

/// Rows that the app adds for owners to whom the account is linked.
@Suite struct OwnerTests {
    static let tables = [
        "list": ["name": "text"], "item": ["title": "text", "list": "text"], "mark": ["item": "text"],
    ]
    static let sql = """
        CREATE TABLE list (id TEXT PRIMARY KEY NOT NULL, name TEXT);
        CREATE TABLE item (id TEXT PRIMARY KEY NOT NULL, title TEXT, list TEXT REFERENCES list ON DELETE CASCADE);
        CREATE TABLE mark (id TEXT PRIMARY KEY NOT NULL, item TEXT REFERENCES item)
        """

    /// A device that has a list of its own and one of another owner.
    func scene(access: Access = .write) async throws -> (ContractServer, Device) {
        let server = ContractServer(Self.tables)
        server.state.withLock { ($0.links, $0.linkAccess) = (["xyz"], access) }
        server.write("list", "own", ["name": "L"])
        server.write("list", "theirs", ["name": "T"], owner: "xyz")
        let device = try await Device(Self.sql, tables: ["mark", "item", "list"])
        try await device.attach(server)
        try await device.weir.sync()
        return (server, device)
    }

    func owners(_ server: ContractServer) -> [String: String] {
        server.state.withLock { $0.rows.mapValues { $0.owner ?? "abc" } }
    }

    @Test func aNewRowBelongsToTheOwnerOfTheRowThatItReferences() async throws {
        let (server, device) = try await scene()
        try device.run(
            """
            INSERT INTO item VALUES ('a', 'A', 'own'), ('b', 'B', 'theirs'), ('c', 'C', NULL);
            INSERT INTO mark VALUES ('m', 'b'), ('n', 'a')
            """)
        try await device.weir.sync()
        #expect(
            owners(server) == [
                "list own": "abc", "list theirs": "xyz", "item a": "abc", "item b": "xyz", "item c": "abc",
                "mark m": "xyz", "mark n": "abc",
            ])
        #expect(try await device.weir.keptEdits().isEmpty)
        // Later changes are the owner's, too.
        try device.run("UPDATE item SET title = 'B2' WHERE id = 'b'; DELETE FROM mark WHERE id = 'm'")
        try await device.weir.sync()
        #expect(server.live.contains(#"item b {"list":"theirs","title":"B2"} 2"#))
        #expect(!server.live.contains { $0.hasPrefix("mark m") })
        #expect(try device.rows("SELECT tbl FROM weir_owner").isEmpty)
    }

    /// A parent is sent in the same batch, and is in the same table.
    @Test func newRowsOfATreeBelongToTheOwnerOfTheRowThatTheyAreBelow() async throws {
        let server = ContractServer(["node": ["parent": "text"]])
        server.state.withLock { $0.links = ["xyz"] }
        server.write("node", "theirs", [:], owner: "xyz")
        let device = try await Device(
            "CREATE TABLE node (id TEXT PRIMARY KEY NOT NULL, parent TEXT REFERENCES node)", tables: ["node"])
        try await device.attach(server)
        try await device.weir.sync()
        try device.run("INSERT INTO node VALUES ('c', 'theirs'), ('b', 'c'), ('a', 'b'), ('own', NULL), ('d', 'own')")
        try await device.weir.sync()
        #expect(
            owners(server) == [
                "node theirs": "xyz", "node c": "xyz", "node b": "xyz", "node a": "xyz", "node own": "abc",
                "node d": "abc",
            ])
        #expect(try device.rows("SELECT tbl FROM weir_owner").isEmpty)
    }

    @Test(arguments: ["", "; UPDATE list SET id = 'new' WHERE id = 'own'"])
    func aRowBesideThoseThatMayOnlyBeReadIsTheAccounts(keyChange: String) async throws {
        let (server, device) = try await scene(access: .read)
        #expect(
            device.weir.currentStatus.owners
                == [Owner(syncID: "abc", access: .write), Owner(syncID: "xyz", access: .read)])
        try device.run("INSERT INTO item VALUES ('b', 'B', 'theirs')" + keyChange)
        try await device.weir.sync()
        #expect(owners(server)["item b"] == "abc")
    }

    @Test func theAppCanSayWhoseANewRowIs() async throws {
        let (server, device) = try await scene()
        try device.run(
            "INSERT INTO list VALUES ('new', 'N'); INSERT INTO item VALUES ('a', 'A', 'new'), ('b', 'B', 'theirs')")
        #expect(try await device.weir.setOwner("xyz", of: "list", .text("new")))
        #expect(try await device.weir.setOwner("abc", of: "ITEM", .text("b")))
        try await device.weir.sync()
        #expect(owners(server)["list new"] == "xyz")
        #expect(owners(server)["item a"] == "xyz")
        #expect(owners(server)["item b"] == "abc")
        // What was sent keeps its owner.
        #expect(try await device.weir.setOwner(nil, of: "list", .text("new")) == false)
        await #expect(throws: WeirError.self) { try await device.weir.setOwner(nil, of: "other", .null) }
    }

    @Test func aRowThatIsSaidToBeTheAccountsBeforeTheFileIsAttachedIsItsOwn() async throws {
        let server = ContractServer(Self.tables)
        let device = try await Device(Self.sql, tables: ["mark", "item", "list"])
        try device.run("INSERT INTO list VALUES ('new', 'N')")
        #expect(try await device.weir.setOwner("abc", of: "list", .text("new")))
        try await device.attach(server)
        try await device.weir.sync()
        server.write("list", "new", ["name": "theirs"])
        try await device.weir.sync()
        #expect(try device.rows("SELECT name FROM list") == ["theirs"])
        #expect(try await device.weir.keptEdits().isEmpty)
        #expect(try await device.weir.parkedRows().isEmpty)
    }

    @Test func aRowAndItsOwnerAreWrittenTogetherOrNotAtAll() async throws {
        let (server, device) = try await scene()
        struct Undone: Error {}
        await #expect(throws: Undone.self) {
            try await device.weir.write { db in
                try db.execute("INSERT INTO list VALUES ('new', 'N')")
                try db.setOwner("xyz", of: "list", .text("new"))
                throw Undone()
            }
        }
        #expect(try device.rows("SELECT tbl FROM weir_owner").isEmpty)
        let saved = try await device.weir.write { db in
            try db.execute("INSERT INTO list VALUES ('new', 'N')")
            try db.execute("INSERT INTO item VALUES ('a', 'A', 'new')")
            #expect(throws: WeirError.self) { try db.setOwner("xyz", of: "other", .null) }
            return try db.setOwner("xyz", of: "LIST", .text("new"))
        }
        #expect(saved.value)
        try await device.weir.sync()
        #expect(owners(server)["list new"] == "xyz" && owners(server)["item a"] == "xyz")
        #expect(try await saved.outcome.map(\.status) == [.applied, .applied])
    }

    @Test func theOwnerIsRememberedWhileTheOutcomeIsNotKnown() async throws {
        for fault in [Fault.lostRequest, .lostAnswer] {
            let (server, device) = try await scene()
            try device.run("INSERT INTO item VALUES ('b', 'B', 'theirs')")
            try await device.sync(with: server, losing: fault)
            // Its list is another one meanwhile.
            try device.run("UPDATE item SET list = 'own'")
            try await device.restart()
            try await device.attach(server)
            server.state.withLock { $0.refusal = "outcome_expired" }
            try await device.weir.sync()
            #expect(owners(server)["item b"] == "xyz")
            #expect(server.live.contains { $0.hasPrefix(#"item b {"list":"own","title":"B"}"#) })
            #expect(try await device.weir.keptEdits().isEmpty)
        }
    }

    @Test(arguments: [false, true]) func aRowWhoseKeyIsChangedStaysItsOwners(isRevoked: Bool) async throws {
        let (server, device) = try await scene()
        try device.run(
            "UPDATE list SET id = 'second' WHERE id = 'theirs'; UPDATE list SET id = 'third' WHERE id = 'second'")
        if isRevoked { server.state.withLock { $0.links = [] } }
        if isRevoked { try await device.pull(server) }
        try await device.weir.sync()
        #expect(owners(server)["list third"] == (isRevoked ? nil : "xyz"))
        #expect(try device.rows("SELECT id FROM list ORDER BY id") == (isRevoked ? ["own"] : ["own", "third"]))
        #expect(Set(try await device.weir.keptEdits().map(\.code)) == (isRevoked ? ["revoked"] : []))
        #expect(try device.rows("SELECT tbl FROM weir_owner").isEmpty)
    }

    /// Keys that SQLite gives again.
    @Test(arguments: [false, true]) func theOwnerOfARowThatIsTakenBackIsNotThatOfTheNextRowOfItsKey(
        isSent: Bool
    ) async throws {
        let server = ContractServer(["item": ["title": "text"]])
        server.state.withLock { ($0.links, $0.refusedText) = (["xyz"], "bad") }
        let device = try await Device("CREATE TABLE item (id INTEGER PRIMARY KEY, title TEXT)")
        try await device.attach(server)
        try await device.weir.sync()
        try device.run("INSERT INTO item VALUES (7, 'bad')")
        #expect(try await device.weir.setOwner("xyz", of: "item", .integer(7)))
        if isSent {
            try await device.weir.sync()
            let refused = try #require(try await device.weir.keptEdits().first)
            #expect(refused.owner == "xyz")
            try await device.weir.resolve(refused, .acceptServer)
        } else {
            #expect(try await device.weir.discard("item", .integer(7)))
        }
        #expect(try device.rows("SELECT title FROM item").isEmpty)
        try device.run("INSERT INTO item VALUES (7, 'mine')")
        try await device.weir.sync()
        #expect(owners(server) == ["item 7": "abc"])
    }

    @Test func aRefusedCreationForALinkedOwnerIsDecidedAbout() async throws {
        for way in [Resolution.keepLocal, .merge(["title": .text("good")])] {
            let (server, device) = try await scene()
            server.state.withLock { $0.refusedText = "bad" }
            try device.run("INSERT INTO item VALUES ('b', 'bad', 'theirs')")
            try await device.weir.sync()
            let edit = try #require(try await device.weir.keptEdits().first)
            #expect(edit.owner == "xyz" && edit.version == nil)
            // Its parent does not say any more whose it is.
            try device.run("UPDATE item SET list = 'own' WHERE id = 'b'")
            server.state.withLock { $0.refusedText = nil }
            try await device.weir.resolve(edit, way)
            try await device.weir.sync()
            #expect(owners(server)["item b"] == "xyz")
            #expect(try await device.weir.keptEdits().isEmpty)
        }
    }

    @Test func aRefusedCreationForAnOwnerThatIsOnlyReadNowIsNotSentAgain() async throws {
        let (server, device) = try await scene()
        server.state.withLock { $0.refusedText = "bad" }
        try device.run("INSERT INTO item VALUES ('b', 'bad', 'theirs')")
        try await device.weir.sync()
        let edit = try #require(try await device.weir.keptEdits().first)
        server.state.withLock { $0.linkAccess = .read }
        try await device.weir.sync()
        await #expect(throws: WeirError.notGranted(owner: "xyz")) {
            try await device.weir.resolve(edit, .merge(["title": .text("good")]))
        }
        try await device.weir.resolve(edit, .acceptServer)
        #expect(try device.rows("SELECT id FROM item").isEmpty)
    }

    @Test(arguments: [Access.read, .write]) func rowsThatANewHistoryHasLostStayTheirOwners(access: Access) async throws
    {
        let (server, device) = try await scene(access: access)
        server.write("item", "t", ["title": "T"], owner: "xyz")
        server.write("item", "o", ["title": "O", "list": "own"])
        try await device.weir.sync()
        server.state.withLock { $0.changeHistory(to: "e2", losing: ["item t", "item o"]) }
        try await device.weir.sync()
        // Those of an owner whose rows may only be read are that owner's to bring back.
        let isWritten = access == .write
        #expect(owners(server)["item o"] == "abc")
        #expect(owners(server)["item t"] == (isWritten ? "xyz" : nil))
        #expect(try device.rows("SELECT id FROM item ORDER BY id") == (isWritten ? ["o", "t"] : ["o"]))
        #expect(try await device.weir.pendingRows() == 0)
        #expect(try await device.weir.keptEdits().isEmpty)
        #expect(try device.rows("SELECT tbl FROM weir_owner").isEmpty)
        let fresh = try await Device(Self.sql, tables: ["mark", "item", "list"])
        try await fresh.attach(server)
        try await fresh.weir.sync()
        #expect(try fresh.rows("SELECT id FROM item ORDER BY id") == device.rows("SELECT id FROM item ORDER BY id"))
    }

    /// They are in no table, and may be on no other device either.
    @Test(arguments: [Access.read, .write], [true, false])
    func orphansThatANewHistoryHasLostStayTheirOwners(access: Access, isLost: Bool) async throws {
        let (server, device) = try await scene(access: access)
        server.write("item", "t", ["title": "T", "list": "gone"], owner: "xyz")
        server.write("item", "o", ["title": "O", "list": "gone"])
        try await device.weir.sync()
        #expect(try device.rows("SELECT id FROM item").isEmpty)
        server.state.withLock { $0.changeHistory(to: "e2", losing: isLost ? ["item t", "item o"] : []) }
        try await device.weir.sync()
        try await device.weir.sync()
        let isTheirs = access == .write || !isLost
        #expect(owners(server)["item o"] == "abc")
        #expect(owners(server)["item t"] == (isTheirs ? "xyz" : nil))
        #expect(try await device.weir.parkedRows().map(\.id).sorted() == (isTheirs ? ["o", "t"] : ["o"]))
        #expect(try await device.weir.parkedRows().allSatisfy { $0.version > 0 })
        #expect(try device.rows("SELECT id FROM item").isEmpty)
        #expect(try await device.weir.pendingRows() == 0)
        server.write("list", "gone", ["name": "L"])
        try await device.weir.sync()
        #expect(try device.rows("SELECT id FROM item ORDER BY id") == (isTheirs ? ["o", "t"] : ["o"]))
    }

    @Test func anOrphanThatTheTableCannotHaveAgainEndsNoSessionAndIsSentOnceItCan() async throws {
        let (server, device) = try await scene()
        server.write("item", "o", ["title": "O", "list": "gone"])
        try await device.weir.sync()
        try device.run(
            """
            CREATE TRIGGER refuse BEFORE INSERT ON item WHEN NEW.title = 'O' BEGIN SELECT RAISE(ROLLBACK, 'refused'); END
            """)
        server.state.withLock { $0.changeHistory(to: "e2", losing: ["item o"]) }
        try device.run("INSERT INTO list VALUES ('mine', 'M')")
        try await device.weir.sync()
        #expect(owners(server)["list mine"] == "abc")
        #expect(try await device.weir.parkedRows().map(\.version) == [0])
        try device.run("DROP TRIGGER refuse")
        try await device.restart()
        try await device.attach(server)
        try await device.weir.sync()
        #expect(owners(server)["item o"] == "abc")
        #expect(try await device.weir.parkedRows().allSatisfy { $0.version > 0 })
        #expect(try await device.weir.pendingRows() == 0)
    }

    /// A network by which the row `other` of the linked owner has the id of a row of the account.
    func sharingAnID(_ server: ContractServer, _ id: String = "same") -> ScriptedTransport {
        ScriptedTransport { request, _ in
            var request = request
            let body = String(decoding: request.body, as: UTF8.self)
            request.body = Array(
                body.replacing(#""id":"\#(id)","syncId":"xyz""#, with: #""id":"other","syncId":"xyz""#).utf8)
            var response = try await server.send(request)
            let text = String(decoding: response.body, as: UTF8.self)
            response.body = Array(text.replacing(#""id":"other""#, with: #""id":"\#(id)""#).utf8)
            return response
        }
    }

    @Test func aChildIsOfTheOwnerOfTheRowInTheTableAndNotOfOneThatWaitsUnderTheSameKey() async throws {
        let (server, device) = try await scene()
        try await device.attach(sharingAnID(server))
        server.write("list", "same", ["name": "own"])
        try await device.weir.sync()
        server.write("list", "other", ["name": "theirs"], owner: "xyz")
        try await device.weir.sync()
        #expect(try await device.weir.parkedRows().map(\.owner) == ["xyz"])
        try device.run("INSERT INTO item VALUES ('i', 'I', 'same')")
        try await device.weir.sync()
        #expect(owners(server)["item i"] == "abc")
    }

    @Test(arguments: ["abc", "xyz"])
    func aRowStaysItsOwnersWhenTheHistoryChangesAndAnotherOwnerHasOneOfThisID(owner: String) async throws {
        let (server, device) = try await scene()
        let isAccounts = owner == "abc"
        let (mine, waiting) = isAccounts ? ("own", "xyz") : ("theirs", "abc")
        try await device.attach(sharingAnID(server))
        for first in [true, false] {
            if first == isAccounts {
                server.write("list", "same", ["name": "own"])
            } else {
                server.write("list", "other", ["name": "theirs"], owner: "xyz")
            }
            try await device.weir.sync()
        }
        #expect(try await device.weir.parkedRows().map(\.owner) == [waiting])
        // Whichever owner's rows come first, and whether the row itself comes again.
        for (epoch, lost) in [("e2", []), ("e3", isAccounts ? ["list same"] : ["list other"])]
            as [(String, Set<String>)]
        {
            server.state.withLock { $0.changeHistory(to: epoch, losing: lost) }
            try await device.weir.sync()
            #expect(try device.rows("SELECT name FROM list WHERE id = 'same'") == [mine])
            #expect(try await device.weir.parkedRows().map(\.owner) == [waiting])
        }
        try device.run("UPDATE list SET name = name || ' edited' WHERE id = 'same'")
        try await device.weir.sync()
        #expect(server.live.contains { $0.contains(#"{"name":"\#(mine) edited"}"#) })
        #expect(server.live.contains { $0.contains(#"{"name":"\#(isAccounts ? "theirs" : "own")"}"#) })
    }
}
