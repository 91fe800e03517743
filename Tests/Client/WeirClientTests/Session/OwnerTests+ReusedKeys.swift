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

    @Test func aNewRowUnderTheIntegerOfADeletedRowStaysWhenThatRowsOwnerIsRevoked() async throws {
        let (server, device) = try await withDeletedRow(.write)
        try device.run("INSERT INTO item (title) VALUES ('mine')")
        server.state.withLock { $0.links = [] }
        try await device.pull(server)
        try await device.weir.sync()
        #expect(owners(server)["item 7"] == "abc")
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
}
