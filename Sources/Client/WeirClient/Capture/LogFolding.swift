/// Folds a table's log into one edit for each row.
///
/// Of each column the first recorded value counts, which is the value before the first change, and of the times that of the last change.
/// The triggers only append, which is cheap for the app; what this costs is paid by Weir, at a moment of its choice and in slices.
struct LogFolding {
    let table: CapturedTable

    /// How many rows of the log are folded in one transaction: some milliseconds.
    static let slice = 500

    /// Folds all of the log, in transactions of a slice each.
    func foldInSlices(in database: Database) throws {
        var checked: Int64 = 0
        // Most logs are empty, which is seen without the write lock.
        while try database.value("SELECT 1 FROM \(table.log) LIMIT 1") != nil {
            try database.transaction(writesRows: false) { try fold(in: database, limit: Self.slice, checked: &checked) }
        }
    }

    /// Folds all of the log, as part of the open transaction.
    func fold(in database: Database) throws {
        var checked: Int64 = 0
        try fold(in: database, limit: .max, checked: &checked)
    }

    /// Folds the oldest rows of the log.
    ///
    /// - Parameters:
    ///   - limit: how many.
    ///   - checked: up to where no record is left of a row that was not replaced.
    private func fold(in database: Database, limit: Int, checked: inout Int64) throws {
        let newest = try database.integer("SELECT max(seq) FROM \(table.log)")
        let oldest = try database.integer("SELECT min(seq) FROM \(table.log)")
        guard let newest, let oldest else { return }
        let end = newest - oldest < limit ? newest : oldest + Int64(limit) - 1
        if end > checked {
            // In all of the log: the insertion that follows a replacement may be far behind it.
            try database.run(forgetKept)
            checked = newest
        }
        // Rows without a key cannot be synced; freezing reports them.
        try database.run(upsert, [.integer(end)])
        try database.run("DELETE FROM \(table.log) WHERE seq <= ?1", [.integer(end)])
        // SQLite counts from 1 again in an empty log.
        if end == newest { checked = 0 }
    }

    /// Forgets the records of rows that an insertion could have replaced, and has not: it was ignored, or has updated the row instead.
    ///
    /// With them the edit would be that of a row that the app has deleted.
    private var forgetKept: String {
        """
        DELETE FROM \(table.log) AS e WHERE kind = \(LogKind.replace.rawValue)
        AND id NOT IN (SELECT id FROM \(table.log) WHERE kind = \(LogKind.insert.rawValue) AND id IS NOT NULL)
        AND EXISTS (SELECT 1 FROM \(table.quotedName) AS t WHERE \(PendingRow.join(table)))
        """
    }

    /// Whether a column's value before is known: all are, or its bit is set.
    static func isKnown(_ row: String, _ column: CapturedTable.Column) -> String {
        isKnown(row, column: column.number)
    }

    static func isKnown(_ row: String, column number: Int) -> String {
        "(\(row).v0 = -1 OR \(row).v\(CapturedTable.word(ofColumn: number)) & \(CapturedTable.bit(ofColumn: number)))"
    }

    private var upsert: String {
        let words = 0..<table.words
        let columns =
            ["id", "at", "was_there"] + words.map { "m\($0)" } + words.map { "v\($0)" } + table.columns.map(\.side)
        // An inserted row is sent with every column (-1), and has no values before. A deleted or replaced one has all.
        let masks = words.map { word in
            "CASE kind WHEN \(LogKind.update.rawValue) THEN m\(word) "
                + "WHEN \(LogKind.insert.rawValue) THEN \(word == 0 ? -1 : 0) ELSE 0 END"
        }
        let known = words.map { word in
            "CASE kind WHEN \(LogKind.update.rawValue) THEN m\(word) "
                + "WHEN \(LogKind.insert.rawValue) THEN 0 ELSE \(word == 0 ? -1 : 0) END"
        }
        let edit = table.edit
        let values = table.columns.map {
            "\($0.side) = CASE WHEN \(Self.isKnown(edit, $0)) THEN \(edit).\($0.side) ELSE excluded.\($0.side) END"
        }
        let wasThere = "kind <> \(LogKind.insert.rawValue)"
        // An insertion that follows updates alone is that of a row that a trigger of the app has changed before it was recorded.
        let isInsertion = "excluded.m0 = -1 AND \(edit).m0 <> -1 AND \(edit).v0 <> -1"
        let unions =
            words.map { "m\($0) = \(edit).m\($0) | excluded.m\($0)" }
            + words.map { "v\($0) = \(edit).v\($0) | excluded.v\($0)" }
        return """
            INSERT INTO \(edit) (\(columns.joined(separator: ", ")))
            SELECT \((["id", "at", wasThere] + masks + known + table.columns.map(\.side)).joined(separator: ", "))
            FROM \(table.log) WHERE seq <= ?1 AND id IS NOT NULL ORDER BY seq
            ON CONFLICT (id) DO UPDATE SET was_there = CASE WHEN \(isInsertion) THEN 0 ELSE \(edit).was_there END,
            \((["at = \(time)"] + unions + values).joined(separator: ", "))
            """
    }

    /// When the row was changed: by what is folded, unless the row is as that has recorded it before.
    ///
    /// Then a statement was ignored, or what it has changed was changed back, which is recorded after it.
    private var time: String {
        let key = "t.\(table.quotedKey)"
        let words = (0..<table.words).map { word in
            let columns = table.columns.filter { $0.word == word }.map { column in
                let differs = column.definition.differs("t.\(quoted(column.name))", "excluded.\(column.side)")
                return "excluded.m\(word) & \(column.bit) AND \(differs)"
            }
            return columns.isEmpty ? "0" : "(\(columns.joined(separator: " OR ")))"
        }
        return """
            CASE WHEN excluded.m0 = -1 OR NOT EXISTS (SELECT 1 FROM \(table.quotedName) AS t
            WHERE \(key) = excluded.id AND excluded.id = \(key) COLLATE BINARY
            AND NOT (\(words.joined(separator: " OR "))))
            THEN excluded.at ELSE \(table.edit).at END
            """
    }
}
