import SchemaFile
import SyncModel
import Testing

@Suite struct SchemaFileTests {
    private func tables(_ text: String) throws(SchemaFileError) -> [Table] {
        try SchemaFile.tables(from: Array(text.utf8))
    }

    private func problems(_ text: String, limits: OutcomeLimits = OutcomeLimits()) -> [String] {
        do {
            _ = try SchemaFile.tables(from: Array(text.utf8), limits: limits)
            return []
        } catch {
            return error.description.split(separator: "\n").map(String.init)
        }
    }

    @Test func theDefaultsOfATableMustFitIntoARow() {
        let text = """
            tables:
              note:
                columns:
                  a: { type: text, default: abcdef }
                  b: { type: text, default: ghijkl }
                  c: text
            """
        #expect(problems(text, limits: OutcomeLimits(maxRowBytes: 20)).isEmpty)
        #expect(
            problems(text, limits: OutcomeLimits(maxRowBytes: 19)) == [
                "2:3: the defaults of the table note have 20 bytes together, a row at most 19"
            ])
    }

    @Test func readsTablesWithTypesPoliciesDefaultsAndReferences() throws {
        let tables = try tables(
            """
            tables:
              list:
                columns:
                  title: { type: text, nullable: false, length: 200 }
              task:
                policy: lastWriteWins
                columns:
                  list: { type: text, references: list, onDelete: reassign }
                  price: { type: "decimal(6, 2)", default: "1.5" }
                  done: { type: boolean, nullable: false, default: false }
                  count: { type: integer, default: 9007199254740993 }
                  labels: { type: json, default: [a, 1, { b: null }] }
                  due: date
            """)
        #expect(tables.map(\.name) == ["list", "task"])
        #expect(tables.map(\.policy) == [.lastSyncWins, .lastWriteWins])
        #expect(tables[0].columns == [Column(name: "title", type: .text, isNullable: false, maximumLength: 200)])
        let task = tables[1].columns
        #expect(task[0].references == "list" && task[0].onDelete == .reassign)
        #expect(task[1].type == .decimal(precision: 6, scale: 2))
        #expect(
            task.map { $0.defaultValue.map { String(decoding: $0, as: UTF8.self) } } == [
                nil, "\"1.50\"", "false", "\"9007199254740993\"", "[\"a\",1,{\"b\":null}]", nil,
            ])
        #expect(task[2].isNullable == false)
        #expect(task[5] == Column(name: "due", type: .date))
    }

    @Test(arguments: [
        ("", "the file is empty"),
        ("table:\n", "1:1: the file has no key table; did you mean tables?"),
        ("tables: 3\n", "1:9: tables must be a mapping of names, found an integer"),
        ("tables:\n  a:\n    columns:\n      b: txt\n", "4:10: a type must be one of"),
        (
            "tables:\n  a:\n    columns:\n      b: { type: text, lenght: 3 }\n",
            "4:24: the column b has no key lenght; did you mean length?"
        ),
        ("tables:\n  a:\n    policy: lastWins\n    columns:\n      b: text\n", "3:13: policy must be one of"),
        ("tables:\n  a:\n    columns:\n      b: { type: integer, default: x }\n", "4:36: this default is not valid"),
        (
            "tables:\n  a:\n    columns:\n      b: { type: text, nullable: false, default: null }\n",
            "4:50: this default is not valid"
        ),
        ("tables:\n  a:\n    columns:\n      id: text\n", "4:7: a.id:"),
        ("tables:\n  a:\n    columns:\n      b: { type: text, references: c }\n", "4:7: a.b:"),
        ("tables:\n  a:\n    columns:\n      b: { type: text, onDelete: reassign }\n", "4:7: a.b:"),
        (
            "tables:\n  a:\n    columns:\n      b: { type: text, references: a, onDelete: reasign }\n",
            "4:49: onDelete must be reassign; did you mean reassign?"
        ),
        ("tables:\n  a:\n    columns:\n      b: text\n      b: text\n", "5:7:"),
        ("tables:\n  a: [\n", "3:1:"),
    ])
    func namesLineAndColumnOfEachProblem(text: String, expected: String) {
        let problems = problems(text)
        #expect(problems.contains { $0.hasPrefix(expected) }, "\(problems)")
    }

    @Test func reportsEveryProblemInTheOrderOfTheLines() {
        let problems = problems(
            """
            tables:
              a:
                columns:
                  b: txt
                  c: { type: text, nullable: perhaps }
              d:
                policy: none
                columns:
                  e: { length: 3 }
            """)
        #expect(problems.map { $0.prefix { $0 != ":" } } == ["4", "5", "7", "9"])
    }
}
