import SyncModel

/// The tables of the ordering tests, by their position.
enum Fixture: Int, CaseIterable {
    /// lastSyncWins, nullable columns without defaults.
    case note
    /// lastWriteWins.
    case task
    /// checkBase.
    case account
    /// lastSyncWins, with a required column and a default.
    case member
    /// lastSyncWins, and checkBase from version 3 on.
    case shift

    /// Versions 1 to 3: the second adds columns, the third changes a policy.
    static let history: SchemaHistory = {
        var history = SchemaHistory()
        for (index, schema) in [first, second, third].enumerated() {
            let version = SchemaVersion(ordinal: index + 1, hash: "v\(index + 1)")
            history.append(SchemaHistory.Entry(version: version, schema: schema))
        }
        return history
    }()

    private static let first = Schema(tables: [
        Table(name: "note", columns: two),
        Table(name: "task", policy: .lastWriteWins, columns: two),
        Table(name: "account", policy: .checkBase, columns: two),
        Table(name: "member", columns: three),
        Table(name: "shift", columns: two),
    ])

    private static let second = Schema(tables: [
        Table(name: "note", columns: two + added),
        Table(name: "task", policy: .lastWriteWins, columns: two + added),
        Table(name: "account", policy: .checkBase, columns: two),
        Table(name: "member", columns: three + added),
        Table(name: "shift", columns: two),
    ])

    private static let third = Schema(
        tables: second.tables.map { table in
            table.name == "shift" ? Table(name: "shift", policy: .checkBase, columns: table.columns) : table
        })

    private static let two = [Column(name: "a", type: .integer), Column(name: "b", type: .integer)]

    private static let three = [
        Column(name: "name", type: .text, isNullable: false),
        Column(name: "level", type: .integer, isNullable: false, defaultValue: Array("1".utf8)),
        Column(name: "remark", type: .text),
    ]

    private static let added = [
        Column(name: "color", type: .text, isNullable: false, defaultValue: Array("\"red\"".utf8)),
        Column(name: "place", type: .text),
    ]
}
