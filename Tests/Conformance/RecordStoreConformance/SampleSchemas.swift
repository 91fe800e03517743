import SyncModel
import SyncWire

/// The schema versions that the cases use.
enum Sample {
    static let epoch = "00112233445566778899aabbccddeeff"
    static let everyType = 0
    static let order = 1
    static let late = 2

    /// A column of each type, all nullable.
    private static let everyTypeTable = Table(
        name: "every_type",
        columns: [
            Column(name: "a_text", type: .text),
            Column(name: "an_integer", type: .integer),
            Column(name: "a_real", type: .real),
            Column(name: "a_boolean", type: .boolean),
            Column(name: "a_decimal", type: .decimal(precision: 38, scale: 10)),
            Column(name: "a_uuid", type: .uuid),
            Column(name: "a_timestamp", type: .timestamp),
            Column(name: "a_date", type: .date),
            Column(name: "some_bytes", type: .bytes),
            Column(name: "some_json", type: .json),
        ])

    /// Names that are words of SQL, or of the stores themselves.
    private static let orderColumns = [
        Column(name: "Select", type: .text, isNullable: false),
        Column(name: "rowid", type: .integer, isNullable: false, defaultValue: json("5")),
        Column(name: "exact", type: .text),
    ]

    /// What version 2 adds: a default of each type, with what is delicate in SQL.
    static let added: [(column: Column, reads: String)] =
        [
            ("text", .text, true, #""it's \"a\"; --\n\\ é""#), ("integer", .integer, true, #""-9223372036854775808""#),
            ("large", .integer, false, "9007199254740991"), ("real", .real, true, "-0.1"), ("whole", .real, false, "3"),
            ("yes", .boolean, false, "true"), ("decimal", .decimal(precision: 5, scale: 2), true, #""-0.50""#),
            ("uuid", .uuid, true, #""00000000-0000-4000-8000-0123456789ab""#),
            ("timestamp", .timestamp, true, #""2026-01-02T03:04:05.000000Z""#), ("date", .date, true, #""0001-01-01""#),
            ("bytes", .bytes, true, #""AP8n""#), ("json", .json, true, #"{"it's":[1,"\"é"],"a":null}"#),
            ("empty", .text, false, #""""#), ("nothing", .bytes, false, #""""#), ("null_default", .text, true, "null"),
        ].map { (name: String, type: ColumnType, isNullable: Bool, value: String) in
            (Column(name: name, type: type, isNullable: isNullable, defaultValue: json(value)), value)
        } + [(Column(name: "plain", type: .text), "null")]

    static let version1 = Schema(tables: [
        everyTypeTable, Table(name: "order", policy: .checkBase, columns: orderColumns),
    ])

    static let version2 = Schema(tables: [
        everyTypeTable, Table(name: "order", columns: orderColumns + added.map(\.column)),
        Table(name: "late", columns: [Column(name: "value", type: .text)]),
    ])

    static func history(_ versions: Schema...) -> SchemaHistory {
        var history = SchemaHistory()
        for (index, schema) in versions.enumerated() {
            history.append(.init(version: SchemaVersion(ordinal: index + 1, of: schema), schema: schema))
        }
        return history
    }

    static let first = history(version1)
    static let second = history(version1, version2)

    static func json(_ text: String) -> [UInt8] { Array(text.utf8) }
}
