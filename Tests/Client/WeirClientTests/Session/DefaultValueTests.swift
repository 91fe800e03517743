import Foundation
import Synchronization
import TestResources
import Testing
import WeirClient

/// Columns in which the app permits no NULL, and of which the server has no value: rows have the column's default, which is nobody's edit.
@Suite struct DefaultValueTests {
    private static let before = "CREATE TABLE item (id TEXT PRIMARY KEY NOT NULL, title TEXT)"
    private static let migration = """
        ALTER TABLE item ADD COLUMN color TEXT NOT NULL DEFAULT 'red';
        ALTER TABLE item ADD COLUMN size REAL NOT NULL DEFAULT 0
        """
    private static let query = "SELECT id || ' ' || title || ' ' || color || ' ' || size FROM item ORDER BY id"

    private func server(_ policy: String = "lastSyncWins") -> ContractServer {
        let server = ContractServer(["item": ["title": "text", "color": "text", "size": "real"]])
        server.state.withLock { $0.policy = policy }
        return server
    }

    /// A device whose app has added the columns to the table of an older one.
    private func updated(_ server: ContractServer) async throws -> Device {
        let device = try await Device(Self.before)
        try await device.attach(server)
        try await device.weir.sync()
        await device.weir.close()
        try device.run(Self.migration)
        try await device.restart()
        try await device.attach(server)
        try await device.weir.sync()
        return device
    }

    private func expect(
        _ device: Device, _ rows: [String], kept: [String] = [], sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        #expect(try device.rows(Self.query) == rows, sourceLocation: sourceLocation)
        #expect(try await device.weir.parkedRows().isEmpty, sourceLocation: sourceLocation)
        #expect(try await device.weir.pendingRows() == 0, sourceLocation: sourceLocation)
        #expect(try await device.weir.keptEdits().map(\.code) == kept, sourceLocation: sourceLocation)
    }

    @Test func rowsThatAnOlderAppHasWrittenHaveTheDefault() async throws {
        let server = server()
        let old = try await Device(Self.before)
        try await old.attach(server)
        try old.run("INSERT INTO item VALUES ('a', 'A'), ('b', 'B')")
        try await old.weir.sync()
        let device = try await updated(server)
        let new = try await Device("\(Self.before); \(Self.migration)")
        try await new.attach(server)
        try await new.weir.sync()
        try old.run("UPDATE item SET title = 'A2' WHERE id = 'a'; INSERT INTO item VALUES ('c', 'C')")
        try await old.weir.sync()
        for device in [device, new] {
            try await device.weir.sync()
            try await expect(device, ["a A2 red 0.0", "b B red 0.0", "c C red 0.0"])
        }
        // A change of another column sends that one alone, and what the app gives the column is the row's.
        try device.run("UPDATE item SET title = 'B2' WHERE id = 'b'; UPDATE item SET color = 'blue' WHERE id = 'c'")
        try await device.weir.sync()
        #expect(
            server.live == [
                #"item a {"title":"A2"} 2"#, #"item b {"title":"B2"} 2"#, #"item c {"color":"blue","title":"C"} 2"#,
            ])
        try await old.weir.sync()
        try old.run("UPDATE item SET title = 'C2' WHERE id = 'c'")
        try await old.weir.sync()
        for device in [device, new] {
            try await device.weir.sync()
            try await expect(device, ["a A2 red 0.0", "b B2 red 0.0", "c C2 blue 0.0"])
        }
    }

    @Test func aDefaultThatIsAnotherEachTimeIsEachRowsOwnAndStays() async throws {
        let server = server()
        for id in ["a", "b"] { server.write("item", id, ["title": id]) }
        let device = try await Device(
            "CREATE TABLE item (id TEXT PRIMARY KEY NOT NULL, title TEXT, color TEXT NOT NULL DEFAULT (hex(randomblob(8))))"
        )
        try await device.attach(server)
        try await device.weir.sync()
        let colors = try device.rows("SELECT color FROM item ORDER BY id")
        #expect(colors.map(\.count) == [16, 16])
        #expect(Set(colors).count == 2)
        server.write("item", "a", ["title": "A2"])
        try await device.weir.sync()
        #expect(try device.rows("SELECT title FROM item ORDER BY id") == ["A2", "b"])
        #expect(try device.rows("SELECT color FROM item ORDER BY id") == colors)
        // A value of the server's replaces it.
        server.write("item", "a", ["color": "blue"])
        try await device.weir.sync()
        #expect(try device.rows("SELECT color FROM item ORDER BY id") == ["blue", colors[1]])
        #expect(try await device.weir.pendingRows() == 0)
    }

    @Test func aRowWithoutAValueThatHasNoDefaultWaits() async throws {
        let server = server()
        server.write("item", "a", ["title": "A"])
        server.write("item", "b", ["title": "B", "color": "blue"])
        let device = try await Device(
            "CREATE TABLE item (id TEXT PRIMARY KEY NOT NULL, title TEXT, color TEXT NOT NULL)")
        try await device.attach(server)
        try await device.weir.sync()
        #expect(try device.rows("SELECT id FROM item") == ["b"])
        #expect(try await device.weir.parkedRows().map(\.id) == ["a"])
    }

    @Test func aRowThatTwoDevicesHaveInsertedWithTheSameValuesIsNotSentForADefault() async throws {
        let server = server("checkBase")
        let device = try await updated(server)
        server.write("item", "x", ["title": "X"])
        try await device.pull(server, beneath: "INSERT INTO item (id, title) VALUES ('x', 'X')")
        try await device.weir.sync()
        try await expect(device, ["x X red 0.0"])
        #expect(server.live == [#"item x {"title":"X"} 1"#])
    }

    @Test func aChangeOfTheColumnBeneathWhichThereIsNoValueIsTakenBackToTheDefault() async throws {
        let server = server()
        server.write("item", "a", ["title": "A"])
        let device = try await updated(server)
        server.write("item", "a", ["title": "A2"])
        try await device.pull(server, beneath: "UPDATE item SET color = 'blue', size = 1")
        #expect(try device.rows(Self.query) == ["a A2 blue 1.0"])
        #expect(try await device.weir.discard("item", .text("a")))
        try await device.weir.sync()
        try await expect(device, ["a A2 red 0.0"])
        #expect(server.live == [#"item a {"title":"A2"} 2"#])
    }

    @Test func aDeletionFromBeforeTheColumnWasAddedIsTakenBackWithTheDefault() async throws {
        let server = server()
        server.write("item", "a", ["title": "A"])
        let device = try await Device(Self.before)
        try await device.attach(server)
        try await device.weir.sync()
        try device.run("DELETE FROM item")
        #expect(try await device.weir.pendingRows() == 1)
        await device.weir.close()
        try device.run(Self.migration)
        try await device.restart()
        try await device.attach(server)
        #expect(try await device.weir.discard("item", .text("a")))
        try await expect(device, ["a A red 0.0"])
    }

    @Test(arguments: [Resolution.keepLocal, .acceptServer, .merge(["size": .real(2)])])
    func aConflictIsShownAndDecidedWithTheDefault(resolution: Resolution) async throws {
        let server = server("checkBase")
        server.write("item", "a", ["title": "A"])
        let device = try await updated(server)
        server.write("item", "a", ["title": "A2"])
        try device.run("UPDATE item SET color = 'blue'")
        try await device.weir.sync()
        try await expect(device, ["a A2 red 0.0"], kept: ["conflict"])
        let edit = try #require(try await device.weir.keptEdits().first)
        #expect(edit.local == ["color": .text("blue")])
        #expect(edit.base == ["color": .text("red")])
        #expect(edit.server == ["title": .text("A2"), "color": .text("red"), "size": .real(0)])
        #expect(edit.conflicting.isEmpty)
        try await device.weir.resolve(edit, resolution)
        try await device.weir.sync()
        let (row, live) =
            switch resolution {
            case .keepLocal: ("a A2 blue 0.0", #"item a {"color":"blue","title":"A2"} 3"#)
            case .acceptServer: ("a A2 red 0.0", #"item a {"title":"A2"} 2"#)
            case .merge: ("a A2 red 2.0", #"item a {"size":2,"title":"A2"} 3"#)
            }
        try await expect(device, [row])
        #expect(server.live == [live])
    }

    /// The values before such an edit are those that the app has seen, and there were none.
    @Test func aConflictBeneathWhichAnotherVersionWasPulledShowsTheDefault() async throws {
        let server = server("checkBase")
        server.write("item", "a", ["title": "A"])
        let device = try await updated(server)
        server.write("item", "a", ["title": "A2"])
        try await device.pull(server, beneath: "UPDATE item SET color = 'blue'")
        server.write("item", "a", ["title": "A3"])
        try await device.pull(server)
        try await device.weir.sync()
        let edit = try #require(try await device.weir.keptEdits().first)
        #expect(edit.base == ["color": .text("red")])
        #expect(edit.server?["color"] == .text("red"))
        #expect(edit.conflicting.isEmpty)
    }

    /// That the migration gives a value, be it the default, is the app's wish to have it at the server.
    @Test func aBackfillIsSentAndTakenBackWhereTheServerHasNoValue() async throws {
        let server = server()
        for id in ["a", "b", "c"] { server.write("item", id, ["title": id]) }
        let device = try await Device(Self.before)
        try await device.attach(server)
        try await device.weir.sync()
        await device.weir.close()
        server.write("item", "b", ["color": "theirs"])
        let url = URL(fileURLWithPath: device.folder.file())
        try await Weir.migrate(url, tables: ["item"], backfill: true) {
            try device.run("\(Self.migration); UPDATE item SET color = 'filled ' || id")
        }
        .close()
        try await device.restart()
        #expect(try await device.weir.discard("item", .text("c")))
        #expect(try device.rows("SELECT color FROM item WHERE id = 'c'") == ["red"])
        try await device.attach(server)
        try await device.weir.sync()
        try await expect(device, ["a a filled a 0.0", "b b theirs 0.0", "c c red 0.0"])
        #expect(server.live.first == #"item a {"color":"filled a","size":0,"title":"a"} 2"#)
    }
}
