import Foundation
import Testing

/// Apps that do not know the columns which a later schema version adds.
@Suite(.timeLimit(.minutes(5))) struct FaceEvolutionTests {
    /// What the later version adds to the first table of a schema, with and without a default.
    private static let columns = ["color: text", "color: { type: text, default: red }"]

    /// Runs a server under a schema, and again under one whose table has another column.
    private func evolve(
        _ schema: String, _ table: String, adding column: String,
        _ start: (TestFolder, String) async throws -> WeirProcess,
        before: (UInt16, TestFolder) async throws -> Void = { _, _ in },
        after: (UInt16, TestFolder) async throws -> Void
    ) async throws {
        let folder = try TestFolder()
        let first = try await start(folder, schema)
        try await before(first.port, folder)
        #expect(await first.stop() == 0)
        var lines = schema.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        let place = try #require(lines.firstIndex(of: "  \(table):"))
        let end = lines[(place + 2)...].firstIndex { !$0.hasPrefix("      ") } ?? lines.endIndex
        lines.insert("      " + column, at: end)
        let second = try await start(folder, lines.joined(separator: "\n"))
        try await after(second.port, folder)
        #expect(await second.stop() == 0)
        try await Verification.expectEqual(folder)
    }

    @Test(arguments: columns) func aRepeatedCreateOfTheTrackerIsTheSameRow(column: String) async throws {
        let note: JSON = [
            "title": "A", "createdOn": "2026-05-01T08:00:00Z", "updatedOn": "2026-05-01T08:00:00Z",
        ]
        func client(_ port: UInt16) -> DeviceClient {
            DeviceClient(port: port, headers: ["X-Sync-Id": "abc", "X-Device-Id": "phone"])
        }
        var first: JSON = [:]
        try await evolve(TrackerScene.schema, "note", adding: column) {
            try await TrackerScene.start(in: $0, schema: $1)
        } before: { port, _ in
            // The answer is lost.
            first = try await client(port).send("POST", "/tracker/note", note).json()
        } after: { port, folder in
            let again = try await client(port).send("POST", "/tracker/note", note)
            #expect(again.status == 201)
            #expect(try again.json() == first)
            #expect(try await TrackerScene(port: port, folder: folder).documents("note").count == 1)
        }
    }
}
