/// The columns that every table of rows has before those of its schema.
///
/// Names without the prefix are those that a schema may not use; the others carry the prefix that it may not use.
enum RowColumns {
    /// All in the order of the table, with the types that SQLite enforces.
    ///
    /// Moments are microseconds since 1970: `datetime(created_at / 1000000, 'unixepoch')` spells one, and no value that
    /// a device sent as `updatedAt` is out of range.
    static let declarations = [
        "sync_id TEXT NOT NULL",
        "id TEXT NOT NULL",
        "knowledge_id TEXT NOT NULL",
        "time_stamp INTEGER NOT NULL",
        "version INTEGER NOT NULL",
        "deleted INTEGER NOT NULL",
        "created_at INTEGER NOT NULL",
        "updated_at INTEGER NOT NULL",
        "weir_writer_sync_id TEXT NOT NULL",
        "weir_writer_knowledge_id TEXT NOT NULL",
        "weir_writer_batch INTEGER",
        "weir_exact INTEGER NOT NULL",
        "weir_others_time_stamp INTEGER NOT NULL",
    ]

    static let names = declarations.map { String($0.prefix { $0 != " " }) }

    /// How many of them are the key.
    static let keyCount = 2
}
