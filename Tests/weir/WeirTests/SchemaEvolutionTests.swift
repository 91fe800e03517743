import Foundation
import SQLite
import Testing

/// A schema is extended while devices of both versions sync, and never reduced.
@Suite(.timeLimit(.minutes(5))) struct SchemaEvolutionTests {
    private static let first = """
        tables:
          person:
            columns:
              name: { type: text, nullable: false, length: 5 }
        """
    private static let second = """
        tables:
          person:
            columns:
              name: { type: text, nullable: false, length: 50 }
              nick: text
              color: { type: text, nullable: false, default: gray }
          pet:
            columns:
              name: text
        """

    private let folder: TestFolder

    init() throws { folder = try TestFolder() }

    private func start(_ schema: String) async throws -> WeirProcess {
        try await WeirProcess.start(
            schema: try folder.write(schema, to: "schema.yaml"), in: folder,
            settings: ["partitions": "1", "clock": "sequence(100)"])
    }

    private func person(_ id: String, _ values: JSON) -> JSON { TestDevice.change(id, values) }

    @Test func oldAndNewDevicesExchangeAfterAnExtension() async throws {
        let before = try await start(Self.first)
        var old = TestDevice(before, syncID: "abc", knowledgeID: "old")
        let made = try await old.sync([person("p1", ["name": "Grace"]), person("p2", ["name": "Ada"])])
        #expect(TestDevice.verdicts(made) == ["applied", "applied"])
        #expect(await before.stop() == 0)

        let weir = try await start(Self.second)
        old.move(to: weir.port)
        old.schemaVersion = made["schemaVersion"].string
        // A device of the first version is checked against its own schema.
        let edited = try await old.sync([
            person("p1", ["name": "Gr"]), person("p3", ["name": "Barbara"]), person("p3", ["nick": "B"]),
            TestDevice.change("t1", ["name": "Rex"], table: "pet"),
        ])
        #expect(
            TestDevice.verdicts(edited) == [
                "applied", "refused invalid_value", "refused unknown_column", "refused unknown_table",
            ])
        #expect(edited["schemaVersion"] != made["schemaVersion"])

        var new = TestDevice(weir, syncID: "abc", knowledgeID: "new")
        new.schemaVersion = edited["schemaVersion"].string
        let written = try await new.sync([
            person("p4", ["name": "Katherine", "nick": "Kat", "color": "red"]), person("p5", ["name": "Barbara"]),
            person("p2", ["nick": "Countess"]), TestDevice.change("t1", ["name": "Tom"], table: "pet"),
        ])
        #expect(TestDevice.verdicts(written) == ["applied", "applied", "applied", "applied"])
        // The old device's next edit leaves the columns that it does not know as they are.
        _ = try await old.sync([person("p2", ["name": "A."])])
        try await old.drain()
        try await new.drain()
        // Both have every row; the old device's answer may leave out columns that its version has not.
        #expect(new.visible.mapValues { $0["name"] } == old.visible.mapValues { $0["name"] })
        #expect(new.visible.count == 5)
        let rows = Dictionary(uniqueKeysWithValues: new.rows.values.map { ($0["id"].string ?? "", $0["values"]) })
        #expect(rows["p1"]?["name"].string == "Gr")
        #expect(rows["p2"] == ["name": "A.", "nick": "Countess", "color": "gray"])
        #expect(rows["p4"] == ["name": "Katherine", "nick": "Kat", "color": "red"])
        #expect(rows["t1"] == ["name": "Tom"])
        #expect(await weir.stop() == 0)

        #expect(
            try table("SELECT id, name, ifnull(nick, 'NULL'), color FROM person ORDER BY id") == [
                ["p1", "Gr", "NULL", "gray"], ["p2", "A.", "Countess", "gray"], ["p4", "Katherine", "Kat", "red"],
                ["p5", "Barbara", "NULL", "gray"],
            ])
        #expect(try table("SELECT id, name FROM pet") == [["t1", "Tom"]])
    }

    /// A row that was not written since a column was added lacks it in its stream, and not in the tables.
    @Test func aRowOfAnEarlierVersionIsVerified() async throws {
        for (schema, id) in [(Self.first, "p1"), (Self.second, "p2")] {
            let weir = try await start(schema)
            var device = TestDevice(weir, syncID: "abc", knowledgeID: "device of \(id)")
            _ = try await device.sync([person(id, ["name": "Grace"])])
            #expect(await weir.stop() == 0)
        }
        try await Verification.expectEqual(folder)
    }

    @Test(arguments: [
        ("nick: text", "", "person.nick: the column was removed"),
        ("nick: text", "nick: integer", "person.nick: the type changed from text to integer"),
        ("length: 50", "length: 5", "person.name: the maximum length was reduced from 50 to 5"),
        ("default: gray", "default: blue", "person.color: "),
        ("pet:", "beast:", "pet: the table was removed"),
    ]) func aSchemaThatWouldLoseDataIsRejectedAndTheOldOneStillWorks(
        text: String, replacement: String, explanation: String
    ) async throws {
        let before = try await start(Self.second)
        var device = TestDevice(before, syncID: "abc", knowledgeID: "k1")
        _ = try await device.sync([person("p1", ["name": "Grace", "nick": "G"])])
        #expect(await before.stop() == 0)

        try folder.write(Self.second.replacing(text, with: replacement), to: "schema.yaml")
        let refused = try await CommandRun.run(
            "run", "--schema", "schema.yaml", "--data", "data", "--address", "127.0.0.1:0", "--partitions", "1",
            "--clock", "sequence(100)", "--log-format", "json", in: folder)
        #expect(refused.code == 1)
        let error = try JSON.line(try #require(refused.errorLines.last))["error"].string ?? ""
        #expect(error.split(separator: "\n").contains { $0.hasPrefix(explanation) }, "\(error)")

        let weir = try await start(Self.second)
        device.move(to: weir.port)
        let answer = try await device.sync([person("p2", ["name": "Ada", "nick": "A"])])
        #expect(TestDevice.verdicts(answer) == ["applied"])
        var fresh = TestDevice(weir, syncID: "abc", knowledgeID: "k2")
        try await fresh.drain()
        #expect(fresh.visible.count == 2)
        #expect(await weir.stop() == 0)
    }

    /// The rows of a query on the tables, as text.
    private func table(_ query: String) throws -> [[String]] {
        let connection = try Connection(path: folder.path + "/data/tables.db", access: .readOnly)
        var rows: [[String]] = []
        do {
            var select = try connection.prepare(query)
            while try select.step() {
                rows.append(try (0..<select.columnCount).map { try select.text(at: $0) })
            }
        }
        try connection.close()
        return rows
    }
}
