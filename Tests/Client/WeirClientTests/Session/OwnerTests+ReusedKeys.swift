import Foundation
import Synchronization
import Testing
import WeirClient

/// Integers that SQLite gives again after the row of another owner is deleted.
extension OwnerTests {
    /// A device whose greatest key was that of a row of a linked owner, which is deleted now, so that SQLite gives it again.
    private func withDeletedRow(_ access: Access) async throws -> (ContractServer, Device) {
        let server = ContractServer(["item": ["title": "text"]])
        server.state.withLock { ($0.links, $0.linkAccess) = (["xyz"], access) }
        server.write("item", "6", ["title": "six"])
        server.write("item", "other", ["title": "theirs"], owner: "xyz")
        let device = try await Device("CREATE TABLE item (id INTEGER PRIMARY KEY, title TEXT)")
        try await device.attach(sharingAnID(server, "7"))
        try await device.weir.sync()
        #expect(try device.rows("SELECT id || title FROM item ORDER BY id") == ["6six", "7theirs"])
        if access == .write {
            try device.run("DELETE FROM item WHERE id = 7")
        } else {
            server.write("item", "other", nil, owner: "xyz")
        }
        try await device.weir.sync()
        #expect(try device.rows("SELECT id || title FROM item ORDER BY id") == ["6six"])
        return (server, device)
    }

    @Test(arguments: [Access.write, .read])
    func aNewRowUnderTheIntegerOfAnOwnersDeletedRowIsTheAccounts(access: Access) async throws {
        let (server, device) = try await withDeletedRow(access)
        try device.run("INSERT INTO item (title) VALUES ('mine')")
        try await device.weir.sync()
        #expect(owners(server) == ["item 6": "abc", "item other": "xyz", "item 7": "abc"])
        #expect(server.live == [#"item 6 {"title":"six"} 1"#, #"item 7 {"title":"mine"} 1"#])
        try device.run("UPDATE item SET title = 'edited' WHERE id = 7")
        try await device.weir.sync()
        #expect(server.live.last == #"item 7 {"title":"edited"} 2"#)
        #expect(try await device.weir.keptEdits().isEmpty)
        #expect(try await device.weir.pendingRows() == 0)
    }

    @Test func anOwnersDeletedRowIsInsertedAgainIfTheAppSaysThatItIsTheOwners() async throws {
        let (server, device) = try await withDeletedRow(.write)
        try device.run("INSERT INTO item (title) VALUES ('again')")
        #expect(try await device.weir.setOwner("xyz", of: "item", .integer(7)))
        try await device.weir.sync()
        #expect(owners(server) == ["item 6": "abc", "item other": "xyz"])
        #expect(server.live.last == #"item other {"title":"again"} 3"#)
        #expect(try await device.weir.setOwner(nil, of: "item", .integer(7)) == false)
    }

    @Test(arguments: ["abc", "uvw"]) func aNewRowUnderTheIntegerOfADeletedRowStaysWhenThatRowsOwnerIsRevoked(
        owner: String
    ) async throws {
        let (server, device) = try await withDeletedRow(.write)
        try device.run("INSERT INTO item (title) VALUES ('mine')")
        server.state.withLock { $0.links = ["uvw"] }
        if owner == "uvw" { #expect(try await device.weir.setOwner("uvw", of: "item", .integer(7))) }
        try await device.pull(server)
        try await device.weir.sync()
        #expect(owners(server)["item 7"] == owner)
        #expect(try device.rows("SELECT title FROM item WHERE id = 7") == ["mine"])
        #expect(try await device.weir.keptEdits().isEmpty)
    }

    /// Another device of the account has given the key again.
    @Test func aRowOfTheAccountTakesTheKeyOfAnOwnersDeletedRow() async throws {
        let (server, device) = try await withDeletedRow(.read)
        server.write("item", "7", ["title": "mine"])
        try await device.weir.sync()
        #expect(try device.rows("SELECT title FROM item WHERE id = 7") == ["mine"])
        #expect(try await device.weir.parkedRows().isEmpty)
        try device.run("UPDATE item SET title = 'edited' WHERE id = 7")
        try await device.weir.sync()
        #expect(server.live.last == #"item 7 {"title":"edited"} 2"#)
    }

    /// The app has replaced the row and not added another one, since it was there.
    @Test(arguments: [false, true])
    func anOwnersRowThatIsReplacedHereAndDeletedThereIsNotTheAccounts(isRevoked: Bool) async throws {
        let server = ContractServer(["item": ["title": "text"]])
        server.state.withLock { $0.links = ["xyz"] }
        server.write("item", "other", ["title": "theirs"], owner: "xyz")
        let device = try await Device("CREATE TABLE item (id INTEGER PRIMARY KEY, title TEXT)")
        let network = sharingAnID(server, "7")
        try await device.attach(network)
        try await device.weir.sync()
        server.write("item", "other", nil, owner: "xyz")
        try await device.pull(network, beneath: "INSERT OR REPLACE INTO item VALUES (7, 'edited')")
        #expect(try device.rows("SELECT title FROM item") == ["edited"])
        if isRevoked {
            server.state.withLock { $0.links = [] }
            try await device.pull(network)
        }
        try await device.weir.sync()
        #expect(owners(server) == ["item other": "xyz"])
        #expect(try device.rows("SELECT title FROM item").isEmpty)
        #expect(try await device.weir.keptEdits().map(\.code) == (isRevoked ? ["revoked"] : []))
        #expect(try await device.weir.conflictLog().map(\.ending) == (isRevoked ? [] : [.deletionWon]))
        #expect(try await device.weir.pendingRows() == 0)
    }

    @Test(arguments: [Resolution.keepLocal, .merge(["title": .text("edited")])])
    func anOwnersDeletedRowIsTheOwnersAgainWhereTheAppDecidesForItsValues(resolution: Resolution) async throws {
        let server = ContractServer(["item": ["title": "text"]])
        server.state.withLock { ($0.links, $0.policy) = (["xyz"], "checkBase") }
        server.write("item", "7", ["title": "theirs"], owner: "xyz")
        let device = try await Device("CREATE TABLE item (id INTEGER PRIMARY KEY, title TEXT)")
        try await device.attach(server)
        try await device.weir.sync()
        try device.run("UPDATE item SET title = 'edited'")
        server.write("item", "7", nil, owner: "xyz")
        try await device.weir.sync()
        let edit = try #require(try await device.weir.keptEdits().first)
        try await device.weir.resolve(edit, resolution)
        try await device.weir.sync()
        #expect(owners(server) == ["item 7": "xyz"])
        #expect(server.live == [#"item 7 {"title":"edited"} 3"#])
        #expect(try await device.weir.keptEdits().isEmpty)
        #expect(try await device.weir.pendingRows() == 0)
    }

    @Test func aNewRowIsTheAccountsAfterTheServerHasRefusedAnOwnersDeletedRow() async throws {
        let server = ContractServer(["item": ["title": "text"]])
        server.state.withLock { ($0.links, $0.policy, $0.refusedText) = (["xyz"], "checkBase", "edited") }
        server.write("item", "other", ["title": "theirs"], owner: "xyz")
        let device = try await Device("CREATE TABLE item (id INTEGER PRIMARY KEY, title TEXT)")
        let network = sharingAnID(server, "7")
        try await device.attach(network)
        try await device.weir.sync()
        try device.run("UPDATE item SET title = 'edited'")
        server.write("item", "other", nil, owner: "xyz")
        try await device.weir.sync()
        let edit = try #require(try await device.weir.keptEdits().first)
        try await device.weir.resolve(edit, .keepLocal)
        try await device.weir.sync()
        #expect(try await device.weir.keptEdits().map(\.code) == ["value_too_large"])
        #expect(try device.rows("SELECT title FROM item").isEmpty)
        try device.run("INSERT INTO item VALUES (7, 'mine')")
        try await device.weir.sync()
        #expect(owners(server) == ["item other": "xyz", "item 7": "abc"])
    }

    /// Another device has edited the deleted row meanwhile.
    @Test func aNewRowStaysTheAccountsWhenALaterVersionOfTheOwnersDeletedRowComes() async throws {
        let (server, device) = try await withDeletedRow(.write)
        server.write("item", "other", nil, owner: "xyz")
        try await device.pull(sharingAnID(server, "7"), beneath: "INSERT INTO item (title) VALUES ('mine')")
        try await device.attach(sharingAnID(server, "7"))
        try await device.weir.sync()
        #expect(owners(server) == ["item 6": "abc", "item other": "xyz", "item 7": "abc"])
        #expect(server.live.last == #"item 7 {"title":"mine"} 1"#)
        #expect(try await device.weir.keptEdits().isEmpty)
    }

    @Test func anOwnersDeletedRowWhoseKeyTheAccountHasDoesNotWait() async throws {
        let (server, device) = try await withDeletedRow(.write)
        try device.run("INSERT INTO item (title) VALUES ('mine')")
        try await device.weir.sync()
        // Everything comes again for a new column.
        await device.weir.close()
        try device.run("ALTER TABLE item ADD COLUMN note TEXT")
        server.state.withLock { $0.tables["item"]?["note"] = "text" }
        try await device.restart()
        try await device.attach(sharingAnID(server, "7"))
        try await device.weir.sync()
        let pull = try #require(server.requests.last { $0.url.path == "/v1/pull" })
        #expect(String(decoding: pull.body, as: UTF8.self).contains("xyz"))
        #expect(try await device.weir.parkedRows().isEmpty)
        #expect(device.weir.currentStatus.needsAttention.isEmpty)
        #expect(
            try device.rows("SELECT title || state FROM item NATURAL JOIN weir_item_state WHERE id = 7") == [
                "minesynced"
            ])
    }

    private static let lists = ["list": ["name": "text"], "item": ["title": "text", "list": "text"]]
    private static let listsWithIntegers = """
        CREATE TABLE list (id TEXT PRIMARY KEY NOT NULL, name TEXT);
        CREATE TABLE item (id INTEGER PRIMARY KEY, title TEXT, list TEXT REFERENCES list)
        """

    /// A device whose greatest key was that of a row of the account, which is deleted, and a linked owner's list.
    private func withDeletedRowOfTheAccount() async throws -> (ContractServer, Device) {
        let server = ContractServer(Self.lists)
        server.state.withLock { $0.links = ["xyz"] }
        server.write("list", "theirs", ["name": "T"], owner: "xyz")
        let device = try await Device(Self.listsWithIntegers, tables: ["list", "item"])
        try await device.attach(server)
        try device.run("INSERT INTO item VALUES (8, 'eight', NULL), (9, 'nine', NULL)")
        try await device.weir.sync()
        try device.run("DELETE FROM item WHERE id = 9")
        try await device.weir.sync()
        return (server, device)
    }

    /// A row that was added for a linked owner, by its list or as the app says.
    private func addRow(to device: Device, hasList: Bool) async throws {
        try device.run("INSERT INTO item (title, list) VALUES ('new', \(hasList ? "'theirs'" : "NULL"))")
        #expect(try device.rows("SELECT id FROM item WHERE title = 'new'") == ["9"])
        if !hasList { #expect(try await device.weir.setOwner("xyz", of: "item", .integer(9))) }
    }

    @Test(arguments: [true, false])
    func whatWasAddedForARevokedOwnerUnderTheIntegerOfADeletedRowOfTheAccountIsKeptAside(hasList: Bool) async throws {
        let (server, device) = try await withDeletedRowOfTheAccount()
        try await addRow(to: device, hasList: hasList)
        server.state.withLock { $0.links = [] }
        try await device.pull(server)
        try await device.weir.sync()
        #expect(try await device.weir.keptEdits().map(\.code) == ["revoked"])
        #expect(try device.rows("SELECT title FROM item") == ["eight"])
        #expect(!server.live.contains { $0.hasPrefix("item 9") })
        #expect(try device.rows("SELECT tbl FROM weir_owner").isEmpty)
        // That the account's row is deleted is known still, so that a new row of it is not taken for an edit that has not seen that.
        try device.run("INSERT INTO item (title) VALUES ('mine')")
        try await device.weir.sync()
        #expect(server.live.contains { $0.hasPrefix("item 9") && $0.contains("mine") })
        #expect(try device.rows("SELECT title FROM item WHERE id = 9") == ["mine"])
    }

    @Test(arguments: [true, false])
    func whatWasAddedForAnOwnerUnderTheIntegerOfADeletedRowOfTheAccountIsNotTheNextAccounts(hasList: Bool) async throws
    {
        let (_, device) = try await withDeletedRowOfTheAccount()
        try await addRow(to: device, hasList: hasList)
        try await device.weir.detach(.keep, discardingUnsent: true)
        #expect(try device.rows("SELECT title FROM item") == ["eight"])
    }

    /// Its key says that it is that row.
    @Test func aRowThatIsInsertedAgainUnderItsTextualKeyStaysTheAccountsWhenItsListsOwnerIsRevoked() async throws {
        let server = ContractServer(Self.lists)
        server.state.withLock { $0.links = ["xyz"] }
        server.write("list", "theirs", ["name": "T"], owner: "xyz")
        let device = try await Device(
            Self.listsWithIntegers.replacing("INTEGER PRIMARY KEY", with: "TEXT PRIMARY KEY NOT NULL"),
            tables: ["list", "item"])
        try await device.attach(server)
        try device.run("INSERT INTO item VALUES ('a', 'A', NULL)")
        try await device.weir.sync()
        try device.run("DELETE FROM item")
        try await device.weir.sync()
        try device.run("INSERT INTO item VALUES ('a', 'again', 'theirs')")
        server.state.withLock { $0.links = [] }
        try await device.pull(server)
        try await device.weir.sync()
        #expect(owners(server)["item a"] == "abc")
        #expect(server.live.contains { $0.contains("again") })
        #expect(try await device.weir.keptEdits().isEmpty)
    }

    /// Whichever of the two comes first.
    @Test(arguments: [false, true]) func aNewRowOfTheAccountIsNotTakenForAnOwnersRowOfItsKey(isSent: Bool) async throws
    {
        let server = ContractServer(["item": ["title": "text"]])
        server.state.withLock { $0.links = ["xyz"] }
        let device = try await Device("CREATE TABLE item (id INTEGER PRIMARY KEY, title TEXT)")
        let network = sharingAnID(server, "7")
        try await device.attach(network)
        try await device.weir.sync()
        if isSent {
            try device.run("INSERT INTO item VALUES (7, 'mine')")
            try await device.sync(with: server, losing: .lostRequest)
            server.write("item", "other", ["title": "theirs"], owner: "xyz")
            try await device.pull(network)
        } else {
            server.write("item", "other", ["title": "theirs"], owner: "xyz")
            try await device.pull(network, beneath: "INSERT INTO item VALUES (7, 'mine')")
        }
        #expect(try device.rows("SELECT title FROM item") == ["mine"])
        try await device.attach(network)
        try await device.weir.sync()
        #expect(owners(server) == ["item other": "xyz", "item 7": "abc"])
        #expect(server.live.contains { $0.hasPrefix(#"item other {"title":"theirs"}"#) })
        #expect(try device.rows("SELECT title FROM item") == ["mine"])
        #expect(try await device.weir.parkedRows().map(\.owner) == ["xyz"])
        // Its deletion is not that of the account's row.
        server.write("item", "other", nil, owner: "xyz")
        try await device.weir.sync()
        #expect(try device.rows("SELECT title FROM item") == ["mine"])
        #expect(try await device.weir.pendingRows() == 0)
    }

    /// The row is not at the server again when its child is sent, in the same batch.
    @Test func aChildOfAnOwnersRowThatIsInsertedAgainIsTheOwners() async throws {
        let server = ContractServer(["list": ["title": "text"], "item": ["list": "text"], "note": ["item": "integer"]])
        server.state.withLock { ($0.links, $0.linkAccess) = (["xyz"], .write) }
        server.write("list", "l", ["title": "theirs"], owner: "xyz")
        server.write("item", "7", ["list": "l"], owner: "xyz")
        let device = try await Device(
            """
            CREATE TABLE list (id TEXT PRIMARY KEY NOT NULL, title TEXT);
            CREATE TABLE item (id INTEGER PRIMARY KEY, list TEXT REFERENCES list);
            CREATE TABLE note (id TEXT PRIMARY KEY NOT NULL, item INTEGER REFERENCES item);
            """, tables: ["list", "item", "note"])
        try await device.attach(server)
        try await device.weir.sync()
        try device.run("DELETE FROM item")
        try await device.weir.sync()
        try device.run("INSERT INTO item VALUES (7, 'l'); INSERT INTO note VALUES ('n', 7)")
        try await device.weir.sync()
        #expect(owners(server) == ["list l": "xyz", "item 7": "xyz", "note n": "xyz"])
        #expect(try await device.weir.pendingRows() == 0)
    }
}
