import Fuzzing
import SchemaFile
import Seeded
import SyncModel
import SyncWire
import Testing

/// Whatever a schema file holds: every problem has a text, or the tables make a schema that travels.
@Suite struct SchemaFileFuzzTests {
    private static let types = [
        "text", "integer", "real", "boolean", "decimal(6,2)", "decimal(38,0)", "decimal(0,9)", "uuid", "timestamp",
        "date", "bytes", "json", "txt",
    ]

    private static let corpus: [[UInt8]] = [
        """
        tables:
          list:
            columns:
              title: { type: text, nullable: false, length: 200 }
          task:
            policy: lastWriteWins
            columns:
              list: { type: text, references: list }
              price: { type: "decimal(6, 2)", default: "1.5" }
              done: { type: boolean, nullable: false, default: false }
              labels: { type: json, default: [a, 1, { b: null }] }
              due: date
        """,
        "tables: { a: { columns: { b: text, c: { type: integer, default: 9007199254740993 } } } }\n",
        "tables:\n  a:\n    policy: checkBase\n    columns:\n      b: { type: bytes, default: \"AAE=\", length: 2 }\n",
    ].map { Array($0.utf8) }

    private static let words =
        types + [
            "nullable", "length", "default", "references", "onDelete", "reassign", "policy", "columns", "tables", "id",
            "sync_id", "weir_x",
            "9223372036854775808", "-1", "1e999", ".nan", "null", "\"\\0\"", "'", "{ }", "[]", ": ", "\n      ", "Ä",
            "2026-02-30", "a b", "A", "time_stamp", "\"\"",
        ]

    @Test func failsWithAMessageOrReturnsTablesThatCanBeEncoded() throws {
        let tally = try Fuzzer(
            "schema file", count: TestLength.count(2000, long: 100_000), corpus: Self.corpus, words: Self.words,
            generate: Self.file
        ).run { bytes in
            do {
                let schema = Schema(tables: try SchemaFile.tables(from: bytes))
                let version = SchemaVersion(ordinal: 1, of: schema)
                let read = try Schema(decoding: schema.encode())
                guard read == schema, SchemaVersion(ordinal: 1, of: read) == version else {
                    throw Fuzzer.BrokenPromise("another schema when written and read again")
                }
                return .accepted
            } catch let error as SchemaFileError {
                guard !error.problems.isEmpty, error.problems.allSatisfy({ !$0.message.isEmpty }) else {
                    throw Fuzzer.BrokenPromise("refused without a reason")
                }
                return .refused
            }
        }
        #expect(tally.accepted > 100 && tally.refused > 100, "\(tally)")
    }

    private static func file(_ random: inout SeededRandom) -> [UInt8] {
        var text = "tables:\n"
        for table in 0..<Int.random(in: 1...3, using: &random) {
            text += "  t\(table):\n"
            if random.once(in: 2) {
                text +=
                    "    policy: \(["lastSyncWins", "lastWriteWins", "checkBase", "x"].randomElement(using: &random)!)\n"
            }
            text += "    columns:\n"
            for column in 0..<Int.random(in: 1...4, using: &random) {
                var parts = ["type: \"\(types.randomElement(using: &random)!)\""]
                if random.once(in: 3) { parts.append("nullable: \(random.once(in: 2))") }
                if random.once(in: 4) { parts.append("length: \(Int.random(in: 0...300, using: &random))") }
                if random.once(in: 6) { parts.append("references: t\(Int.random(in: 0...2, using: &random))") }
                if random.once(in: 20) { parts.append("onDelete: reassign") }
                if random.once(in: 3) {
                    let values = ["1", "\"1.5\"", "true", "null", "\"x\"", "[1, a]", "\"2026-01-02\"", "1e3", "-0.0"]
                    parts.append("default: \(values.randomElement(using: &random)!)")
                }
                text += "      c\(column): { \(parts.shuffled(using: &random).joined(separator: ", ")) }\n"
            }
        }
        return Array(text.utf8)
    }
}
