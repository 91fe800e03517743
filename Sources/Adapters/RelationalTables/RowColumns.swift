import SyncModel

/// A column that every table of rows has before those of its schema.
package struct RowColumn: Sendable {
    package let name: String
    /// Postgres stores this type; SQLite stores texts as TEXT and all others as INTEGER.
    package let type: ColumnType
    package let isNullable: Bool
    /// What an operator should know about it.
    package let comment: String

    fileprivate init(_ name: String, _ type: ColumnType, isNullable: Bool = false, _ comment: String) {
        self.name = name
        self.type = type
        self.isNullable = isNullable
        self.comment = comment
    }
}

/// Names without the prefix `weir_` are reserved words of the schema file, which also reserves the prefix.
package enum RowColumns {
    /// In the order of the table.
    ///
    /// Times are microseconds since 1970. In SQLite `datetime(created_at / 1000000, 'unixepoch')` formats one; any `updatedAt`
    /// of a device is in range.
    package static let all = [
        RowColumn("sync_id", .text, "Owner of the row: a user or a tenant"),
        RowColumn("id", .text, "Id of the row, unique for its owner"),
        RowColumn("knowledge_id", .text, "Device that created the row"),
        RowColumn("time_stamp", .integer, "Position of the newest version in the order of its owner"),
        RowColumn("version", .integer, "1 when the row was created, one more with each write"),
        RowColumn("deleted", .boolean, "Whether the row is deleted; it is kept for devices that do not know yet"),
        RowColumn("created_at", .timestamp, "When the row was created"),
        RowColumn("updated_at", .timestamp, "When the newest version was written"),
        RowColumn("weir_writer_sync_id", .text, "Caller whose device wrote the newest version"),
        RowColumn("weir_writer_knowledge_id", .text, "Device that wrote the newest version"),
        RowColumn("weir_writer_batch", .integer, isNullable: true, "Number of the batch that wrote it"),
        RowColumn("weir_exact", .boolean, "Whether the row is exactly what that device sent"),
        RowColumn("weir_others_time_stamp", .integer, "time_stamp of the newest version by any other device"),
    ]

    package static let names = all.map(\.name)

    /// The first columns, which are the primary key.
    package static let keyCount = 2

    /// The columns behind the key, which a read returns before the values.
    package static let readCount = all.count - keyCount
}
