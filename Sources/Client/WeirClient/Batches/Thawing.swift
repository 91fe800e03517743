/// Makes edits of the batch pending again, beneath those that were made since.
struct Thawing {
    let database: Database

    /// Makes one row's edit, or all of a table, pending again, as part of the open transaction.
    ///
    /// - Parameters:
    ///   - number: the table's, which need not be listed any more.
    ///   - columns: how many numbers of columns were given.
    func thaw(_ number: Int, columns: Int, _ key: SQLValue? = nil) throws {
        let (edit, sent) = (CapturedTable.edit(number), CapturedTable.sent(number))
        let words = 0..<CapturedTable.words(forColumns: columns)
        let unions =
            words.map { "m\($0) = \(edit).m\($0) | excluded.m\($0)" }
            + words.map { "v\($0) = \(edit).v\($0) | excluded.v\($0)" }
        // The value before both edits is that before the first one.
        let values = (0..<columns).map { index in
            let (side, isKnown) = ("c\(index + 1)", LogFolding.isKnown("excluded", column: index + 1))
            return "\(side) = CASE WHEN \(isKnown) THEN excluded.\(side) ELSE \(edit).\(side) END"
        }
        let folded = CapturedTable.folded(columns: columns)
        let condition = key == nil ? "1" : "id = ?1"
        try database.run(
            """
            INSERT INTO \(edit) (id, \(folded)) SELECT id, \(folded) FROM \(sent) WHERE \(condition)
            ON CONFLICT (id) DO UPDATE SET
            \((["base", "was_sent", "seen", "was_there"].map { "\($0) = coalesce(excluded.\($0), \(edit).\($0))" } + unions + values)
                .joined(separator: ", "))
            """, key.map { [$0] } ?? [])
        try database.run("DELETE FROM \(sent) WHERE \(condition)", key.map { [$0] } ?? [])
        try TrackedOutcomes(database: database).thaw(number, key)
    }

    /// Makes the whole batch pending again, also of tables that are no longer listed; its number is not used again.
    ///
    /// The server may have applied it, and other devices may have written the rows since. A deletion that was applied would remove what
    /// they have inserted again, so from now on it is sent on condition that the row is the one that the app has seen.
    func thawBatch() throws {
        let tables = try database.map("SELECT number, columns FROM weir_table") {
            (number: Int($0.integer(at: 0)), columns: Int($0.integer(at: 1)))
        }
        for table in tables {
            try database.run("UPDATE \(CapturedTable.sent(table.number)) SET was_sent = 1")
            try thaw(table.number, columns: table.columns)
        }
        try KeyChanges.thaw(in: database)
        try database.run("DELETE FROM weir_batch")
    }
}
