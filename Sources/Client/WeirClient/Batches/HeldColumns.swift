/// Changes of columns that the server does not have, in rows of one table: they wait until its schema has the column.
///
/// They are no edits: nothing is sent or overwritten because of them, so that freezing need not look at them each time, and a row whose
/// other columns are sent and received is based on the newest version as ever. Their values are the row's, as for edits.
struct HeldColumns {
    let database: Database
    let table: CapturedTable

    /// How many become edits in one transaction: some milliseconds.
    static let slice = 500

    /// Whether there are any, of any table: most files have none, at any time.
    static func areEmpty(in database: Database) throws -> Bool {
        try database.value("SELECT 1 FROM weir_held LIMIT 1") == nil
    }

    /// Of this table.
    var isEmpty: Bool {
        get throws { try database.value("SELECT 1 FROM weir_held WHERE tbl = \(table.number) LIMIT 1") == nil }
    }

    /// Keeps these columns of an edit that is about to be sent or ended, with their values before.
    func hold(_ columns: [CapturedTable.Column], of key: SQLValue) throws {
        for column in columns {
            try database.run(
                """
                INSERT INTO weir_held (tbl, id, col, before, at) SELECT \(table.number), id, \(column.number),
                CASE WHEN \(LogFolding.isKnown("e", column)) THEN \(column.side) END, at FROM \(table.edit) AS e WHERE id = ?1
                ON CONFLICT (tbl, id, col) DO UPDATE SET at = excluded.at
                """, [key])
        }
    }

    /// Makes edits of what is held of columns that the server has now, as part of the open transaction.
    ///
    /// - Returns: whether there may be more.
    func release(_ server: ServerSchema.Table) throws -> Bool {
        for column in table.columns where server.isKnown(column.name) {
            let end = try database.value(
                """
                SELECT max(id) FROM (SELECT id FROM weir_held WHERE tbl = \(table.number) AND col = \(column.number)
                ORDER BY id LIMIT \(Self.slice))
                """)
            guard let end, end != .null else { continue }
            let words = 0..<table.words
            let mask = words.map { $0 == column.word ? "\(column.bit)" : "0" }.joined(separator: ", ")
            let names = (words.map { "m\($0)" } + words.map { "v\($0)" }).joined(separator: ", ")
            // The value before is that before both, as with a batch that is pending again. A row that is gone has nothing to send.
            try database.run(
                """
                INSERT INTO \(table.edit) (id, at, was_there, \(names), \(column.side))
                SELECT e.id, e.at, 1, \(mask), \(mask), e.before FROM weir_held AS e
                JOIN \(table.quotedName) AS t ON \(PendingRow.join(table))
                WHERE e.tbl = \(table.number) AND e.col = \(column.number) AND e.id <= ?1
                ON CONFLICT (id) DO UPDATE SET m\(column.word) = m\(column.word) | \(column.bit),
                v\(column.word) = CASE v0 WHEN -1 THEN v\(column.word) ELSE v\(column.word) | \(column.bit) END,
                \(column.side) = excluded.\(column.side)
                """, [end])
            try database.run(
                "DELETE FROM weir_held WHERE tbl = \(table.number) AND col = \(column.number) AND id <= ?1", [end])
            return true
        }
        return false
    }

    /// Forgets what is held of a row that is gone.
    func remove(_ key: SQLValue) throws {
        try database.run("DELETE FROM weir_held WHERE tbl = \(table.number) AND id = ?1", [key])
    }

    /// The values before.
    func values(of key: SQLValue) throws -> [(column: CapturedTable.Column, value: SQLValue)] {
        try database.map("SELECT col, before FROM weir_held WHERE tbl = \(table.number) AND id = ?1", [key]) { row in
            table.columns.first { $0.number == row.integer(at: 0) }.map { (column: $0, value: row.value(at: 1)) }
        }.compactMap { $0 }
    }

    /// The columns of which something is held.
    func names(unknownTo server: ServerSchema.Table) throws -> Set<String> {
        Set(
            try table.columns.filter { column in
                try !server.isKnown(column.name)
                    && database.value(
                        "SELECT 1 FROM weir_held WHERE tbl = \(table.number) AND col = \(column.number) LIMIT 1") != nil
            }.map(\.name))
    }
}
