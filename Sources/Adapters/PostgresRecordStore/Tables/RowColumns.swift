import Postgres

/// The columns that every table of rows has before those of its schema.
///
/// Names without the prefix are those that a schema may not use; the others carry the prefix that it may not use.
enum RowColumns {
    /// All in the order of the table.
    static let shapes: [TableShape.Column] = [
        .init("sync_id", "text", comment: "Owner of the row: a user or a tenant", maximumBytes: 255),
        .init("id", "text", comment: "Id of the row, unique for its owner", maximumBytes: 255),
        .init("knowledge_id", "text", comment: "Device that made the row", maximumBytes: 255),
        .init("time_stamp", "bigint", comment: "Place of the newest version in the order of its owner"),
        .init("version", "bigint", comment: "1 when the row was made, one more with each write"),
        .init("deleted", "boolean", comment: "Whether the row is deleted; it is kept for devices that do not know yet"),
        .init("created_at", "timestamp with time zone", comment: "When the row was made"),
        .init("updated_at", "timestamp with time zone", comment: "When the newest version was written"),
        .init(
            "weir_writer_sync_id", "text", comment: "Caller whose device wrote the newest version", maximumBytes: 255),
        .init("weir_writer_knowledge_id", "text", comment: "Device that wrote the newest version", maximumBytes: 255),
        .init("weir_writer_batch", "bigint", isNullable: true, comment: "Number of the batch that wrote it"),
        .init("weir_exact", "boolean", comment: "Whether the row is exactly what that device sent"),
        .init("weir_others_time_stamp", "bigint", comment: "time_stamp of the newest version by any other device"),
    ]

    /// What they are sent and read as.
    static let types: [PostgresType] = [
        .text, .text, .text, .bigint, .bigint, .boolean, .timestamptz, .timestamptz, .text, .text, .bigint, .boolean,
        .bigint,
    ]

    /// How many of them are the key.
    static let keyCount = 2
}
