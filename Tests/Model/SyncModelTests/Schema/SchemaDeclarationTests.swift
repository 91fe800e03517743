import SyncModel
import Testing

@Suite struct SchemaDeclarationTests {
    @Test func acceptsDeclaredTables() throws {
        let tables = [
            Table(
                name: "_Person9",
                columns: [
                    Column(name: String(repeating: "x", count: 63), type: .text, maximumLength: 1),
                    Column(name: "amount", type: .decimal(precision: 38, scale: 38)),
                    Column(name: "rate", type: .decimal(precision: 1, scale: 0), isNullable: false),
                    Column(name: "parent", type: .text, references: "_Person9"),
                    Column(name: "note", type: .json, defaultValue: Array("null".utf8), maximumLength: 5),
                    Column(name: "versions", type: .text),
                    Column(name: "weird", type: .text),
                ]),
            Table(name: "empty", columns: []),
        ]
        #expect(Schema.problems(in: tables).isEmpty)
        #expect(try Schema(declaring: tables) == Schema(tables: tables))
    }

    static let badNames = [
        "", "9a", "a-b", "a b", "ä", "a\u{0}", "\u{212A}", "a.b", "\"", String(repeating: "x", count: 64), "na\u{EF}ve",
    ]

    @Test(arguments: badNames)
    func refusesInvalidNames(name: String) {
        let asTable = Schema.problems(in: [Table(name: name, columns: [])])
        #expect(asTable.count == 1)
        #expect(
            asTable[0].table == name && asTable[0].column == nil && asTable[0].message.contains("is not a valid name"))
        let asColumn = Schema.problems(in: [Table(name: "t", columns: [Column(name: name, type: .text)])])
        #expect(asColumn.count == 1)
        #expect(asColumn[0].column == name && asColumn[0].message.contains("is not a valid name"))
    }

    @Test(arguments: [
        "id", "sync_id", "knowledge_id", "time_stamp", "version", "deleted", "created_at", "updated_at", "ID",
        "Version", "weir_", "weir_writer", "WEIR_x", "xmin", "ctid", "tableoid",
    ])
    func refusesReservedColumns(name: String) {
        let problems = Schema.problems(in: [Table(name: "t", columns: [Column(name: name, type: .text)])])
        #expect(
            problems == [
                SchemaProblem(
                    table: "t", column: name, message: "the name \(name) is reserved: choose another")
            ])
    }

    @Test(arguments: ["weir_position", "Weir_x", "sqlite_master", "pg_class"])
    func refusesReservedTableNames(name: String) {
        let problems = Schema.problems(in: [Table(name: name, columns: [])])
        #expect(problems == [SchemaProblem(table: name, message: "the name \(name) is reserved: choose another")])
        #expect(Schema.problems(in: [Table(name: "version", columns: [])]).isEmpty)
    }

    @Test func refusesNamesThatDifferOnlyInCaseOrNotAtAll() {
        let problems = Schema.problems(in: [
            Table(name: "a", columns: [Column(name: "X", type: .text), Column(name: "x", type: .date)]),
            Table(name: "A", columns: []),
            Table(name: "b", columns: [Column(name: "y", type: .text), Column(name: "y", type: .date)]),
        ])
        #expect(
            problems.map(\.description) == [
                "a.x: x and X differ only in case, which stores ignore: rename one",
                "A: A and a differ only in case, which stores ignore: rename one",
                "b.y: y is declared twice",
            ])
    }

    static let badColumns: [(Column, String)] = [
        (
            Column(name: "c", type: .decimal(precision: 0, scale: 0)),
            "a decimal's precision is 1 to 38, not 0"
        ),
        (Column(name: "c", type: .decimal(precision: 39, scale: 0)), "a decimal's precision is 1 to 38, not 39"),
        (
            Column(name: "c", type: .decimal(precision: 4, scale: 5)),
            "a decimal's scale is 0 to its precision, 4, not 5"
        ),
        (
            Column(name: "c", type: .decimal(precision: 4, scale: -1)),
            "a decimal's scale is 0 to its precision, 4, not -1"
        ),
        (Column(name: "c", type: .text, maximumLength: 0), "a maximum length is at least 1, not 0"),
        (Column(name: "c", type: .bytes, maximumLength: -3), "a maximum length is at least 1, not -3"),
        (Column(name: "c", type: .integer, maximumLength: 5), "the type integer has no maximum length: remove it"),
        (
            Column(name: "c", type: .text, isNullable: false, defaultValue: Array("null".utf8)),
            "the default is null, but the column is not nullable: give another default, or none"
        ),
        (Column(name: "c", type: .text, defaultValue: []), "a default is a JSON value, not empty"),
        (Column(name: "c", type: .text, references: "nobody"), "references \"nobody\", which is not a declared table"),
        (Column(name: "c", type: .text, references: "T"), "references \"T\", which is not a declared table"),
        (
            Column(name: "c", type: .uuid, onDelete: .reassign),
            "onDelete says what becomes of references: add references, or remove it"
        ),
        (
            Column(name: "c", type: .integer, references: "t", onDelete: .reassign),
            "onDelete is for columns of the types text and uuid, which have ids"
        ),
    ]

    @Test(arguments: badColumns)
    func refusesInvalidColumns(column: Column, message: String) {
        let problems = Schema.problems(in: [Table(name: "t", columns: [Column(name: "a", type: .text), column])])
        #expect(problems == [SchemaProblem(table: "t", column: "c", message: message)])
    }

    /// Tables with the tables they reference, and the cycles.
    static let circles: [([(String, [String])], [String])] = [
        ([("a", ["a"]), ("b", ["a"]), ("c", ["b", "a"])], []),
        ([("top", []), ("l", ["top"]), ("r", ["top"]), ("down", ["l", "r"])], []),
        ([("a", ["b"]), ("b", ["a"])], ["a -> b -> a"]),
        ([("a", ["b", "b"]), ("b", ["a", "a"])], ["a -> b -> a"]),
        ([("x", ["a"]), ("a", ["b"]), ("b", ["c"]), ("c", ["a"])], ["a -> b -> c -> a"]),
        ([("a", ["b"]), ("b", ["a"]), ("c", ["d"]), ("d", ["d", "c"])], ["a -> b -> a", "c -> d -> c"]),
    ]

    @Test(arguments: circles)
    func refusesCyclesOfSeveralTables(tables: [(String, [String])], circles: [String]) {
        let problems = Schema.problems(
            in: tables.map { name, parents in
                Table(
                    name: name,
                    columns: parents.enumerated().map { Column(name: "p\($0)", type: .text, references: $1) })
            })
        #expect(
            problems.map(\.message)
                == circles.map {
                    "the tables reference each other in a cycle, \($0): remove one of the references"
                })
        #expect(problems.map(\.table) == circles.map { String($0.prefix(1)) })
    }

    @Test func limitsTablesAndColumns() {
        func tables(_ count: Int) -> [Table] { (0..<count).map { Table(name: "t\($0)", columns: []) } }
        func columns(_ count: Int) -> [Column] { (0..<count).map { Column(name: "c\($0)", type: .text) } }
        #expect(Schema.problems(in: []).map(\.message) == ["declare at least one table"])
        #expect(Schema.problems(in: tables(500)).isEmpty)
        #expect(Schema.problems(in: tables(501)).map(\.message) == ["501 tables are declared, at most 500 may be"])
        #expect(Schema.problems(in: [Table(name: "t", columns: columns(250))]).isEmpty)
        #expect(
            Schema.problems(in: [Table(name: "t", columns: columns(251))])
                == [SchemaProblem(table: "t", message: "251 columns are declared, at most 250 may be")])
    }

    @Test func aLongChainOfTooManyTablesIsRefusedWithoutWalkingIt() {
        let tables = (0..<200_000).map { index in
            Table(name: "t\(index)", columns: [Column(name: "p", type: .text, references: "t\(index + 1)")])
        }
        #expect(Schema.problems(in: tables).first?.message == "200000 tables are declared, at most 500 may be")
    }

    @Test func namesEveryProblemAtOnce() {
        let tables = [
            Table(name: "t", columns: [Column(name: "id", type: .integer, maximumLength: 0, references: "x")])
        ]
        #expect(throws: SchemaRefusal(problems: Schema.problems(in: tables))) { try Schema(declaring: tables) }
        #expect(Schema.problems(in: tables).count == 3)
    }
}
