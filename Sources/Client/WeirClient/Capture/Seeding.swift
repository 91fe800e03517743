/// Adopts rows that were in a table before its changes were captured: each becomes an insertion to be sent, of a row that was there.
struct Seeding {
    let table: CapturedTable

    /// How many rows one transaction adopts, so that writes of the app wait some milliseconds at most.
    static let slice = 1000

    /// A condition for rows `t` of the table that were neither captured nor received.
    ///
    /// An edit that has changed nothing, as of a statement that ignored the row, sends nothing of it.
    static func isUnknown(in table: CapturedTable) -> String {
        let key = "t.\(table.quotedKey)"
        let isTouched = (0..<table.words).map { "e.m\($0) <> 0" }.joined(separator: " OR ")
        return """
            \(key) IS NOT NULL
            AND NOT EXISTS (SELECT 1 FROM \(table.state) AS r WHERE r.id = \(key) COLLATE BINARY)
            AND NOT EXISTS (SELECT 1 FROM \(table.edit) AS e WHERE e.id = \(key) COLLATE BINARY AND (\(isTouched)))
            AND NOT EXISTS (SELECT 1 FROM \(table.sent) AS s WHERE s.id = \(key) COLLATE BINARY)
            """
    }

    /// The columns of the edit of an adopted row `t`, with their values: those of an insertion, which has no values before.
    private var edit: [(column: String, value: String)] {
        let masks = (0..<table.words).flatMap { [("m\($0)", $0 == 0 ? "-1" : "0"), ("v\($0)", "0")] }
        return [("id", "t.\(table.quotedKey)"), ("at", "julianday('now')"), ("was_there", "1")] + masks
    }

    /// Inserts the edits of rows `t` that were neither captured nor received; further conditions follow.
    private var insertion: String {
        """
        INSERT INTO \(table.edit) (\(edit.map(\.column).joined(separator: ", ")))
        SELECT \(edit.map(\.value).joined(separator: ", ")) FROM \(table.quotedName) AS t
        WHERE \(Self.isUnknown(in: table))
        """
    }

    /// Adopts the next rows in the order of their keys, as part of the open transaction.
    ///
    /// - Parameter last: the greatest key of the slice before; moved to that of this slice, and to `nil` at the end.
    /// - Returns: how many rows were adopted.
    func adopt(after last: inout SQLValue?, in database: Database) throws -> Int {
        try LogFolding(table: table).fold(in: database)
        let (key, name) = ("t.\(table.quotedKey)", table.quotedName)
        let range = "\(key) IS NOT NULL" + (last == nil ? "" : " AND \(key) > ?1")
        let bound = last.map { [$0] } ?? []
        let end = try database.value(
            """
            SELECT max(k) FROM (SELECT \(key) AS k FROM \(name) AS t WHERE \(range)
            ORDER BY \(key) LIMIT \(Self.slice))
            """, bound)
        guard let end, end != .null else {
            last = nil
            return 0
        }
        let count = try database.run(
            """
            \(insertion) AND \(range) AND \(key) <= ?\(bound.count + 1)
            ON CONFLICT (id) DO UPDATE SET
            \(edit.dropFirst().map { "\($0.column) = excluded.\($0.column)" }.joined(separator: ", "))
            """, bound + [end])
        last = end
        return count
    }

    /// Adopts one row, as part of the open transaction.
    ///
    /// A row that the server has refused, and that waits for a decision, is not adopted.
    func adopt(_ key: SQLValue, in database: Database) throws {
        try database.run(
            """
            \(insertion) AND \(RowWriter.isKey(table))
            AND NOT EXISTS (SELECT 1 FROM weir_aside WHERE tbl = \(table.number) AND id = ?1 AND resolution IS NULL)
            """, [key])
    }
}

extension ClientFile {
    /// Whether a row is in the app's table, and neither the server nor an edit has it; the logs were folded.
    func isUnknown(_ key: SQLValue, ofTable number: Int) throws -> Bool {
        guard let table = tables.first(where: { $0.number == number }) else { return false }
        let query =
            "SELECT 1 FROM \(table.quotedName) AS t WHERE \(RowWriter.isKey(table)) AND \(Seeding.isUnknown(in: table))"
        return try database.value(query, [key]) != nil
    }
}
