import Foundation
import Testing

/// What the user did last with a row stays, whatever becomes of the changes before it.
extension SQLiteNowErrorTests {
    /// Which row the app's conflict resolver takes.
    enum Resolution: CaseIterable {
        case keepLocal
        case acceptServer
    }

    /// A row that both devices have and the second one has edited; the first edits it while it downloads that, and once more after.
    private static func editDuringDownload(
        _ a: SQLiteNowClient, _ b: SQLiteNowClient, _ resolution: Resolution, then statement: String
    ) async throws {
        a.resolve = { _, payload in resolution == .keepLocal ? payload : nil }
        try insert(a, "u1", "Alice")
        try await a.sync()
        try await b.sync()
        try b.database.run("UPDATE users SET name = 'Bob'")
        try await b.sync()
        a.alter = { [unowned a] answer in
            #expect(throws: Never.self) { try a.database.run("UPDATE users SET name = 'Ann'") }
            return answer
        }
        try await a.download()
        a.alter = { $0 }
        try a.database.run(statement)
    }

    @Test(arguments: Resolution.allCases)
    func aRowThatTheUserDeletedAfterAnEditThatIsAConflictStaysDeleted(resolution: Resolution) async throws {
        try await withDevices { a, b, port, folder in
            try await Self.editDuringDownload(a, b, resolution, then: "DELETE FROM users")
            try await Self.expectEqual([a, b], port, folder)
            #expect(try a.rows(of: "users").isEmpty && a.meta.map { $0["deleted"] } == [1])
        }
    }

    @Test(arguments: Resolution.allCases)
    func anEditThatIsAConflictIsNotStoredOverALaterOne(resolution: Resolution) async throws {
        try await withDevices { a, b, port, folder in
            try await Self.editDuringDownload(a, b, resolution, then: "UPDATE users SET name = 'Anna'")
            try await Self.expectEqual([a, b], port, folder)
            #expect(try b.rows(of: "users").map { $0["name"] } == ["Anna"])
        }
    }

    /// The edit was a conflict and the delete was stored: the edit must not be stored over it when both come again.
    @Test func aRowThatTheUserDeletedStaysDeletedIfTheAnswerIsLost() async throws {
        try await withDevices { a, b, port, folder in
            try await Self.editDuringDownload(a, b, .acceptServer, then: "DELETE FROM users")
            a.network = { .losesAnswer }
            await #expect(throws: (any Error).self) { try await a.upload() }
            a.network = { .works }
            try await Self.expectEqual([a, b], port, folder)
            #expect(try b.rows(of: "users").isEmpty)
        }
    }

    /// The owner may have one row, and has one until the delete that is between.
    @Test(arguments: ["UPDATE users SET name = 'New' WHERE id = 'u1'", "DELETE FROM users WHERE id = 'u1'"])
    func aChangeThatMayPassLaterIsNotStoredOverALaterOne(statement: String) async throws {
        try await withDevices(["limits.max-owner-rows": "1"]) { a, b, _, _ in
            try Self.insert(a, "u9")
            try await a.sync()
            try Self.insert(a, "u1", "Old")
            try a.database.run("DELETE FROM users WHERE id = 'u9'")
            try a.database.run(statement)
            for _ in 0..<3 { try await a.sync() }
            try await b.sync()
            #expect(try !a.hasPending && a.errors.isEmpty)
            #expect(try b.rows(of: "users") == a.rows(of: "users"))
        }
    }
}
