import Foundation
import Synchronization
import TestResources
import Testing
import WeirClient

/// Processes that open a file with different tables.
@Suite struct FewerTablesTests {
    @Test func aTableThatAnotherProcessDoesNotNameIsCapturedAgainWithTheNextCall() async throws {
        let server = ContractServer(["item": ["title": "text"], "list": ["name": "text"]])
        let device = try await Device(
            """
            CREATE TABLE list (id TEXT PRIMARY KEY NOT NULL, name TEXT);
            CREATE TABLE item (id TEXT PRIMARY KEY NOT NULL, title TEXT);
            """, tables: ["list", "item"])
        try await device.attach(server)
        try device.run("INSERT INTO list VALUES ('l', 'L'); INSERT INTO item VALUES ('i', 'I')")
        try await device.weir.sync()
        let before = await device.weir.gaps.count
        let other = try await Weir.open(URL(fileURLWithPath: device.folder.file()), tables: ["item"])
        #expect(try await device.weir.pendingRows() == 0)
        #expect(await device.weir.gaps.dropFirst(before).map { [$0.table, "\($0.cause)"] } == [["list", "notListed"]])
        try device.run("UPDATE list SET name = 'x'; UPDATE item SET title = 'y'")
        try await device.weir.sync()
        #expect(server.live == [#"item i {"title":"y"} 2"#, #"list l {"name":"x"} 2"#])
        // The other one continues with its own.
        #expect(try await other.pendingRows() == 0)
        #expect(await other.gaps.isEmpty)
        try device.run("UPDATE list SET name = 'z'")
        #expect(try await device.weir.pendingRows() == 1)
        #expect(await device.weir.gaps.count == before + 1)
        await other.close()
        await device.weir.close()
    }

    @Test(arguments: [false, true]) func anEditOfATableThatIsNotListedWhileTheHistoryChangesOverwritesNothing(
        isLost: Bool
    ) async throws {
        let server = ContractServer(["item": ["title": "text"], "list": ["name": "text", "note": "text"]])
        let device = try await Device(
            """
            CREATE TABLE list (id TEXT PRIMARY KEY NOT NULL, name TEXT, note TEXT);
            CREATE TABLE item (id TEXT PRIMARY KEY NOT NULL, title TEXT);
            """, tables: ["list", "item"])
        try await device.attach(server)
        try device.run("INSERT INTO list VALUES ('l', 'L', NULL), ('m', 'M', NULL)")
        try await device.weir.sync()
        try device.run("UPDATE list SET name = 'mine' WHERE id = 'l'")
        try await device.restart(tables: ["item"])
        try await device.attach(server)
        server.state.withLock { $0.changeHistory(to: "e2", losing: isLost ? ["list m"] : []) }
        server.write("list", "l", ["note": "theirs"])
        try await device.weir.sync()
        try await device.restart(tables: ["list", "item"])
        try await device.attach(server)
        try await device.weir.sync()
        #expect(try device.rows("SELECT name || ' ' || ifnull(note, '-') FROM list") == ["mine theirs", "M -"])
        #expect(server.live.count == 2)
        #expect(server.live.first?.hasPrefix(#"list l {"name":"mine","note":"theirs"}"#) == true, "\(server.live)")
        #expect(server.live.last?.hasPrefix("list m ") == true)
        #expect(try await device.weir.pendingRows() == 0)
    }

    @Test func aSessionOfAFileWhoseTableIsNoLongerCapturedOpensItAgain() async throws {
        let server = ContractServer(["item": ["title": "text"], "list": ["name": "text"]])
        let device = try await Device(
            """
            CREATE TABLE list (id TEXT PRIMARY KEY NOT NULL, name TEXT);
            CREATE TABLE item (id TEXT PRIMARY KEY NOT NULL, title TEXT);
            """, tables: ["list", "item"])
        let path = device.folder.file()
        try await device.attach(
            ScriptedTransport { request, number in
                let response = try await server.send(request)
                if number == 0 { try ClientFile(path: path, tables: ["item"]).database.close() }
                return response
            })
        server.write("list", "l", ["name": "L"])
        try device.run("INSERT INTO item VALUES ('i', 'I')")
        try await device.weir.sync()
        #expect(try device.rows("SELECT name FROM list") == ["L"])
        try device.run("UPDATE list SET name = 'x'")
        try await device.weir.sync()
        #expect(server.live == [#"item i {"title":"I"} 1"#, #"list l {"name":"x"} 2"#])
    }
}
