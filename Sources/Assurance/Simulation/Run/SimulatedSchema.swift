import SyncModel

/// The schema versions of a run.
enum SimulatedSchema {
    /// Each adds to the one before: columns with and without a default, a table, another policy.
    static let versions = [
        Schema(tables: [note, status, account(.checkBase)]),
        Schema(tables: [noteWithRank, status, account(.lastSyncWins)]),
        Schema(tables: [
            noteWithRank, status.adding([Column(name: "by", type: .uuid)]), account(.lastSyncWins), label,
        ]),
    ]

    // Every policy, and types whose canonical form may differ from what is sent.

    private static let note = Table(
        name: "note",
        columns: [
            Column(name: "title", type: .text, isNullable: false, maximumLength: 40),
            Column(name: "count", type: .integer, isNullable: false, defaultValue: Array("0".utf8)),
            Column(name: "price", type: .decimal(precision: 8, scale: 2)),
            Column(name: "extra", type: .json),
        ])

    private static let noteWithRank = note.adding([
        Column(name: "rank", type: .integer, isNullable: false, defaultValue: Array("7".utf8)),
        Column(name: "place", type: .text),
    ])

    private static let status = Table(
        name: "status", policy: .lastWriteWins,
        columns: [
            Column(name: "done", type: .boolean),
            Column(name: "due", type: .timestamp),
            Column(name: "share", type: .real),
        ])

    private static func account(_ policy: Policy) -> Table {
        Table(
            name: "account", policy: policy,
            columns: [
                Column(name: "balance", type: .integer),
                Column(name: "opened", type: .date),
                Column(name: "key", type: .uuid),
                Column(name: "photo", type: .bytes),
            ])
    }

    private static let label = Table(
        name: "label",
        columns: [
            Column(name: "name", type: .text, isNullable: false),
            Column(name: "color", type: .integer, isNullable: false, defaultValue: Array("3".utf8)),
        ])
}

extension Table {
    fileprivate func adding(_ added: [Column]) -> Table { Table(name: name, policy: policy, columns: columns + added) }
}
