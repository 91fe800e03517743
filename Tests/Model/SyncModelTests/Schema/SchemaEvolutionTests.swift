import SyncModel
import Testing

@Suite struct SchemaEvolutionTests {
    static let person = [
        Column(name: "name", type: .text, isNullable: false, maximumLength: 50),
        Column(name: "age", type: .integer, isNullable: false, defaultValue: Array("0".utf8)),
        Column(name: "note", type: .text),
    ]
    static let tables = [
        Table(name: "person", columns: person), Table(name: "pet", columns: [Column(name: "name", type: .text)]),
    ]
    let before = Schema(tables: tables)

    @Test func theSameTablesInAnyOrderAreTheSameVersion() throws {
        #expect(try before.evolved(to: Self.tables) == before)
        let shuffled = [Self.tables[1], Table(name: "person", columns: Self.person.reversed())]
        #expect(try before.evolved(to: shuffled) == before)
    }

    @Test func newTablesAndColumnsAreAppendedInTheOrderOfTheirFile() throws {
        let first = Column(name: "a_first", type: .text)
        let middle = Column(name: "m", type: .integer, isNullable: false, defaultValue: Array("1".utf8))
        let last = Column(name: "z", type: .text, references: "addition")
        let declared = [
            Table(name: "other", columns: [Column(name: "must", type: .text, isNullable: false)]),
            Table(
                name: "person", columns: [first, Self.person[2], middle, Self.person[0], last, Self.person[1]]),
            Table(name: "addition", columns: []),
            Self.tables[1],
        ]
        let after = try before.evolved(to: declared)
        #expect(after.tables.map(\.name) == ["person", "pet", "other", "addition"])
        #expect(after.tables[0].columns == Self.person + [first, middle, last])
        #expect(after.tables[1] == Self.tables[1])
        #expect(after != before)
        #expect(try after.evolved(to: declared) == after)
        // Each column keeps its index in the newer version.
        #expect(after.tables[0].column(named: Array("note".utf8).span.bytes) == 2)
    }

    static let allowed: [Column] = [
        Column(name: "name", type: .text, isNullable: false, maximumLength: 51),
        Column(name: "name", type: .text, isNullable: false),
        Column(name: "name", type: .text, isNullable: false, maximumLength: 50, references: "pet"),
        Column(
            name: "name", type: .text, isNullable: false, maximumLength: 50, references: "pet", onDelete: .reassign),
    ]

    @Test(arguments: allowed)
    func lengthsMayGrowOrBeRemovedAndReferencesMayChange(column: Column) throws {
        let declared = [Table(name: "person", columns: [column] + Self.person[1...]), Self.tables[1]]
        let after = try before.evolved(to: declared)
        #expect(after.tables[0].columns == [column] + Self.person[1...])
        #expect(after != before)
    }

    @Test func aPolicyMayChange() throws {
        let declared = [Table(name: "person", policy: .checkBase, columns: Self.person), Self.tables[1]]
        let after = try before.evolved(to: declared)
        #expect(after.tables[0].policy == .checkBase && after != before)
        #expect(try after.evolved(to: Self.tables) == before)
    }

    /// The replacement of the column with its name, and why it is refused.
    static let refused: [(Column, String)] = [
        (
            Column(name: "note", type: .json),
            "the type changed from text to json, but older rows have the old type: restore text, or add a new column"
        ),
        (
            Column(name: "note", type: .decimal(precision: 4, scale: 2)),
            "the type changed from text to decimal(4,2), but older rows have the old type: restore text, or add a new column"
        ),
        (
            Column(name: "note", type: .text, isNullable: false),
            "the column was nullable, and rows may hold NULL: make it nullable again, or add a new column"
        ),
        (
            Column(name: "name", type: .text, maximumLength: 50),
            "the column was not nullable, and devices rely on that: make it not nullable again, or add a new column"
        ),
        (
            Column(name: "age", type: .integer, isNullable: false, defaultValue: Array("1".utf8)),
            "the default changed from 0 to 1, and records of older versions would produce different rows: restore it"
        ),
        (
            Column(name: "age", type: .integer, isNullable: false),
            "the default was removed, and records of older versions would produce different rows: restore 0"
        ),
        (
            Column(name: "note", type: .text, defaultValue: Array("\"\"".utf8)),
            "a default was added, and records of older versions would produce different rows: remove it, or add a new column"
        ),
        (
            Column(name: "name", type: .text, isNullable: false, maximumLength: 49),
            "the maximum length was reduced from 50 to 49, and rows may be longer: restore 50 or more"
        ),
        (
            Column(name: "note", type: .text, maximumLength: 9_999),
            "a maximum length was added, and rows may be longer: remove it"
        ),
        (
            Column(name: "fresh", type: .text, isNullable: false),
            "a new column is nullable or has a default, since older rows have no value of it"
        ),
    ]

    @Test(arguments: refused)
    func refusesColumnChangesThatOlderRowsOrRecordsDoNotFit(column: Column, message: String) {
        let columns = Self.person.filter { $0.name != column.name } + [column]
        let problem = SchemaProblem(table: "person", column: column.name, message: message)
        #expect(throws: SchemaRefusal(problems: [problem])) {
            try before.evolved(to: [Table(name: "person", columns: columns), Self.tables[1]])
        }
    }

    @Test func refusesRemovalsAndNamesEveryProblem() {
        let declared = [
            Table(
                name: "person",
                columns: [
                    Column(name: "age", type: .real), Column(name: "id", type: .text),
                    Column(name: "new", type: .text, isNullable: false), Column(name: "Note", type: .text),
                ])
        ]
        do {
            _ = try before.evolved(to: declared)
            Issue.record("nothing of this is allowed")
        } catch {
            #expect(
                error.description.split(separator: "\n").map { $0.prefix { $0 != "," } } == [
                    "person.id: the name id is reserved: choose another",
                    "person.name: the column was removed",
                    "person.age: the type changed from integer to real",
                    "person.age: the column was not nullable",
                    "person.age: the default was removed",
                    "person.note: the column was removed",
                    "person.new: a new column is nullable or has a default",
                    "pet: the table was removed",
                ])
        }
    }
}
