import Foundation
import Testing
import WeirClient

/// What apps are told by a running server about their changes, and what they decide.
@Suite(.timeLimit(.minutes(5))) struct ClientOutcomeTests {
    private static let tables = ["checked": "checkBase", "latest": "lastWriteWins", "merged": "lastSyncWins"]
    private static let names = tables.keys.sorted()

    private func app(_ name: String, _ folder: TestFolder, _ port: UInt16) async throws -> ClientApp {
        let sql = Self.names.map { "CREATE TABLE \($0) (id TEXT PRIMARY KEY NOT NULL, title TEXT, note TEXT)" }
        let app = try await ClientApp(name, in: folder, sql.joined(separator: ";"), tables: Self.names)
        try await app.attach(port)
        return app
    }

    /// Of each table, of the row with this id.
    private func rows(_ app: ClientApp, _ id: String) throws -> [String] {
        try Self.names.flatMap { table in
            let found = try app.rows("SELECT title || ' ' || ifnull(note, '-') FROM \(table) WHERE id = '\(id)'")
            return ["\(table) \(found.first ?? "none")"]
        }
    }

    @Test func anAppIsToldWhatTheServerHasDecidedByEachPolicy() async throws {
        let folder = try TestFolder()
        let schema = Self.names.map {
            "  \($0):\n    policy: \(Self.tables[$0]!)\n    columns: { title: text, note: text }\n"
        }
        try folder.write("tables:\n" + schema.joined(), to: "schema.yaml")
        let weir = try await WeirProcess.start(schema: folder.path + "/schema.yaml", in: folder)
        let phone = try await app("phone", folder, weir.port)
        let laptop = try await app("laptop", folder, weir.port)
        let created = try await phone.weir.write { db in
            for table in Self.names {
                for id in ["a", "b", "c"] { try db.execute("INSERT INTO \(table) VALUES ('\(id)', 'T', 'n')") }
            }
        }
        for app in [phone, laptop] { try await app.weir.sync() }
        #expect(try await created.outcome.map(\.status) == Array(repeating: .applied, count: 9))
        for table in Self.names {
            let states = try laptop.rows("SELECT state || written_by || is_seen FROM weir_\(table)_state")
            #expect(states == Array(repeating: "syncedphone1", count: 3))
        }
        // The laptop edits one row, deletes another, and syncs before the phone, whose edit is older.
        let late = try await phone.weir.write { db in
            for table in Self.names { try db.execute("UPDATE \(table) SET title = 'phone' WHERE id <> 'c'") }
        }
        for table in Self.names {
            try laptop.run(
                "UPDATE \(table) SET title = 'laptop', note = 'L' WHERE id = 'a'; DELETE FROM \(table) WHERE id = 'b'")
        }
        for app in [laptop, phone] { try await app.weir.sync() }
        let outcomes = try await late.outcome
        #expect(
            outcomes.map { "\($0.row.table) \($0.row.key) \($0.status)" } == [
                "checked 'a' conflict", "checked 'b' conflict", "latest 'a' conflict", "latest 'b' deleted",
                "merged 'a' applied", "merged 'b' deleted",
            ])
        #expect(try rows(phone, "a") == ["checked laptop L", "latest laptop L", "merged phone L"])
        #expect(try rows(phone, "b").allSatisfy { $0.hasSuffix("none") })
        for outcome in outcomes.prefix(4) {
            let kept = try #require(outcome.kept)
            #expect(kept.local == ["title": .text("phone")] && kept.base == ["title": .text("T")])
        }
        // The phone's values are written again, and its rows inserted again.
        for outcome in outcomes { if let kept = outcome.kept { try await phone.weir.resolve(kept, .keepLocal) } }
        for app in [phone, laptop] { try await app.weir.sync() }
        for app in [phone, laptop] {
            #expect(try rows(app, "a") == ["checked phone L", "latest phone L", "merged phone L"])
            #expect(try rows(app, "b") == ["checked phone n", "latest phone n", "merged phone n"])
            #expect(try await app.weir.keptEdits().isEmpty)
        }
        // A resolver decides on the laptop.
        try await laptop.weir.setResolver(.mergeColumns, for: "checked")
        try phone.run("UPDATE checked SET title = 'new' WHERE id = 'c'")
        try laptop.run("UPDATE checked SET note = 'new' WHERE id = 'c'")
        for app in [phone, laptop] { try await app.weir.sync() }
        await laptop.weir.finishResolving()
        for app in [laptop, phone] { try await app.weir.sync() }
        for app in [phone, laptop] { #expect(try rows(app, "c")[0] == "checked new new") }
        for app in [phone, laptop] { await app.weir.close() }
        #expect(await weir.stop() == 0)
        try await Verification.expectEqual(folder)
    }
}
