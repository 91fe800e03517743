import SyncModel
import Testing

@Suite struct SchemaTests {
    @Test func findsTablesAndColumnsByTheirBytes() {
        let names = ["zeta", "K", "a", "A", "ab", "abc", "_", "k"]
        let schema = Schema(tables: names.map { Table(name: $0, columns: names.map { Column(name: $0, type: .text) }) })
        for (position, name) in names.enumerated() {
            #expect(schema.table(named: Array(name.utf8).span.bytes) == position)
            #expect(schema.tables[0].column(named: Array(name.utf8).span.bytes) == position)
        }
        // The Kelvin sign is canonically equivalent to K, and is not K.
        for name in ["\u{212A}", "", "abcd", "b", "AB", "zet", "zeta\u{0}", "\u{E9}"] {
            #expect(schema.table(named: Array(name.utf8).span.bytes) == nil)
            #expect(schema.tables[0].column(named: Array(name.utf8).span.bytes) == nil)
        }
        #expect(Schema(tables: []).table(named: Array("a".utf8).span.bytes) == nil)
    }

    /// Tables with the tables they reference, and their ranks.
    static let ranks: [([(String, [String])], [Int])] = [
        ([("a", [])], [0]),
        ([("a", ["a"])], [0]),
        ([("c", ["b"]), ("b", ["a"]), ("a", [])], [2, 1, 0]),
        ([("a", []), ("b", ["a", "b"]), ("c", ["b", "a"]), ("d", ["a"])], [0, 1, 2, 1]),
        ([("d", ["a", "c"]), ("a", []), ("c", ["b"]), ("b", ["a"])], [3, 0, 2, 1]),
        // The longest chain counts, whichever reference comes first.
        ([("d", ["c", "a"]), ("a", []), ("c", ["b"]), ("b", ["a"])], [3, 0, 2, 1]),
        ([("left", ["top"]), ("right", ["top"]), ("bottom", ["left", "right"]), ("top", [])], [1, 1, 2, 0]),
    ]

    @Test(arguments: ranks)
    func ranksParentsBelowTheirChildren(tables: [(String, [String])], ranks: [Int]) {
        let schema = Schema(
            tables: tables.map { name, parents in
                Table(
                    name: name,
                    columns: [Column(name: "x", type: .text)]
                        + parents.enumerated().map { Column(name: "p\($0)", type: .text, references: $1) })
            })
        #expect(schema.ranks == ranks)
    }

    @Test func aColumnWithoutDefaultThatIsNotNullableIsRequired() {
        #expect(Column(name: "a", type: .text, isNullable: false).isRequired)
        #expect(!Column(name: "a", type: .text).isRequired)
        #expect(!Column(name: "a", type: .text, isNullable: false, defaultValue: Array("\"\"".utf8)).isRequired)
    }

    @Test(arguments: [
        (ColumnType.text, "text", true), (.integer, "integer", false), (.real, "real", false),
        (.boolean, "boolean", false), (.decimal(precision: 10, scale: 2), "decimal(10,2)", false),
        (.uuid, "uuid", false), (.timestamp, "timestamp", false), (.date, "date", false), (.bytes, "bytes", true),
        (.json, "json", true),
    ])
    func typesHaveTheContractsNames(type: ColumnType, name: String, hasLength: Bool) {
        #expect(type.name == name)
        #expect(type.hasLength == hasLength)
    }
}
