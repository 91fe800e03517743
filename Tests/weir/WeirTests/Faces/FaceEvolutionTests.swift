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

    @Test(arguments: columns) func theRestDocumentsClientKeepsItsEdits(column: String) async throws {
        try await evolve(RestScene.schema, "category", adding: column) {
            try await RestScene.start(in: $0, [:], schema: $1)
        } after: { port, folder in
            let scene = RestScene(port: port, folder: folder)
            let phone = try scene.device("phone")
            try phone.insert("category", "c1", ["name": "A"])
            try await phone.sync()
            for round in 1...3 {
                try phone.update("category", "c1", ["name": "\(round)"])
                try await phone.sync()
                #expect(try phone.row("category", "c1")?["name"] == "\(round)")
            }
            #expect(phone.conflicts.isEmpty)
            #expect(try await scene.rows("category").map { $0["name"] } == ["3"])
        }
    }

    /// A row in which an app that knows the column has given it a value.
    @Test func anEditOfAnOlderAppLeavesTheColumnAndIsKept() async throws {
        try await evolve(RestScene.schema, "category", adding: Self.columns[0]) {
            try await RestScene.start(in: $0, [:], schema: $1)
        } after: { port, folder in
            let scene = RestScene(port: port, folder: folder)
            let phone = try scene.device("phone")
            try await scene.write("laptop", "category", "c1", ["name": "A", "color": "blue"])
            try await phone.sync()
            for round in 1...3 {
                try phone.update("category", "c1", ["name": "\(round)"])
                try await phone.sync()
            }
            #expect(phone.conflicts.isEmpty)
            let rows = try await scene.rows("category")
            #expect(rows.map { $0["name"] } == ["3"] && rows.map { $0["color"] } == ["blue"])
        }
    }

    @Test(arguments: columns, [false, true])
    func theTrackersClientKeepsItsEdits(column: String, countsOwnRows: Bool) async throws {
        try await evolve(TrackerScene.schema, "note", adding: column) {
            try await TrackerScene.start(in: $0, schema: $1)
        } after: { port, folder in
            let phone = try TrackerScene(port: port, folder: folder, countsOwnRows: countsOwnRows).device("phone")
            try phone.create("note", ["title": "A"])
            try await phone.sync()
            for title in ["B", "C", "D"] {
                try phone.edit("note", where: "id", is: "1", ["title": title])
                try await phone.sync()
                #expect(try phone.values("note", "title") == [title])
            }
            #expect(phone.overwritten.isEmpty)
            // A device that is alone asks for no rows.
            #expect(!phone.requests.contains { $0.hasPrefix("GET /tracker/note") })
        }
    }

    /// A client skips rows of its own source, and takes all others over what its user has done since the upload.
    @Test(arguments: columns) func aRowOfASQLiteNowClientIsStillItsOwn(column: String) async throws {
        try await evolve(SQLiteNowTests.schema, "users", adding: column) {
            try await WeirProcess.start(
                schema: try $0.write($1, to: "schema.yaml"), in: $0, settings: ["faces": "sqlitenow"])
        } after: { port, _ in
            let phone = DeviceClient(port: port, headers: ["X-Sync-Id": "abc", "X-Device-Id": "phone"])
            let changes = ["u1", "u2"].enumerated().map { number, id in
                [
                    "sourceChangeId": JSON(number + 1), "table": "users", "op": "INSERT", "pk": JSON(id),
                    "serverVersion": 0, "payload": ["id": JSON(id), "name": "Alice", "email": nil],
                ] as JSON
            }
            let stored = try await phone.send(
                "POST", "/sync/upload", ["changes": JSON(changes.map(\.value))] as JSON
            ).json()
            #expect(stored["statuses"].array.map { $0["status"] } == ["applied", "applied"], "\(stored)")
            let window = try await phone.get("/sync/download?after=0&limit=10&includeSelf=true").json()
            #expect(window["changes"].array.map { $0["sourceId"] } == ["phone", "phone"], "\(window)")
        }
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
