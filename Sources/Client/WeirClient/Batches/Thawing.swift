/// Makes edits of the batch pending again, beneath those that were made since.
struct Thawing {
    let database: Database

    /// Makes one row's edit, or all of a table, pending again, as part of the open transaction.
    func thaw(_ table: CapturedTable, _ key: SQLValue? = nil) throws {
        let words = 0..<table.words
        let unions =
            words.map { "m\($0) = \(table.edit).m\($0) | excluded.m\($0)" }
            + words.map { "v\($0) = \(table.edit).v\($0) | excluded.v\($0)" }
        // The value before both edits is that before the first one.
        let values = table.columns.map {
            "\($0.side) = CASE WHEN \(LogFolding.isKnown("excluded", $0)) THEN excluded.\($0.side) ELSE \(table.edit).\($0.side) END"
        }
        let condition = key == nil ? "1" : "id = ?1"
        try database.run(
            """
            INSERT INTO \(table.edit) (id, \(table.folded)) SELECT id, \(table.folded) FROM \(table.sent) WHERE \(condition)
            ON CONFLICT (id) DO UPDATE SET
            \((["base = coalesce(excluded.base, \(table.edit).base)"] + unions + values).joined(separator: ", "))
            """, key.map { [$0] } ?? [])
        try database.run("DELETE FROM \(table.sent) WHERE \(condition)", key.map { [$0] } ?? [])
    }

    /// Makes the whole batch pending again; its number is not used again.
    func thawBatch(_ tables: [CapturedTable]) throws {
        for table in tables { try thaw(table) }
        try database.run("DELETE FROM weir_batch")
    }
}
