/// Edits by which rows of the server are replaced whole, as by INSERT OR REPLACE, while values of columns that were added have not come.
///
/// They mean every column whose values the app knew, and of the new ones those that it has given: they become changes of these columns, since the
/// server may have values of the others.
struct PendingReplacements {
    private let table: CapturedTable
    /// The columns whose values have not come.
    private let added: [CapturedTable.Column]

    /// - Parameter known: the greatest number of a column whose values have come.
    private init(table: CapturedTable, known: Int64) {
        self.table = table
        added = table.columns.filter { $0.number > known }
    }

    /// In `weir_meta`, with a table's number: the greatest number of a column whose values have come.
    private static let key = "added_columns "

    /// Confines those that are pending, or in the batch, when columns are added, and records that values of these are to come, as part of the open
    /// transaction.
    static func begin(adding new: [CapturedTable.Column], to table: CapturedTable, in database: Database) throws {
        let key = SQLValue.text("\(Self.key)\(table.number)")
        let before = new.reduce(table.columnNumbers) { min($0, $1.number - 1) }
        // Values of columns that were added earlier may still be to come.
        try database.run(
            "INSERT OR IGNORE INTO weir_meta (key, value) VALUES (?1, ?2)", [key, .integer(Int64(before))])
        let known = try database.integer("SELECT value FROM weir_meta WHERE key = ?1", [key]) ?? Int64(before)
        let pending = PendingReplacements(table: table, known: known)
        try LogFolding(table: table).fold(in: database)
        for side in [table.edit, table.sent] {
            // Where all values before are known, that of a new column is what it has: the app has not changed it.
            let (names, values) = (new.map(\.side), new.map { "t.\(quoted($0.name))" })
            try database.run(
                """
                UPDATE \(side) AS e SET (\(names.joined(separator: ", "))) =
                (SELECT \(values.joined(separator: ", ")) FROM \(table.quotedName) AS t WHERE \(PendingRow.join(table)))
                WHERE e.v0 = -1
                """)
            try pending.confine(side, in: database)
        }
    }

    /// Confines those that were made since, once the logs are folded, as part of the open transaction.
    static func confine(in file: ClientFile) throws {
        let open = try file.database.map(
            "SELECT substr(key, \(key.utf8.count + 1)), value FROM weir_meta WHERE key GLOB '\(key)*'"
        ) { (table: Int($0.string(at: 0)), known: $0.integer(at: 1)) }
        for (number, known) in open {
            guard let table = file.tables.first(where: { $0.number == number }) else { continue }
            try PendingReplacements(table: table, known: known).confine(table.edit, in: file.database)
        }
    }

    /// Everything has come.
    static func end(in database: Database) throws {
        try database.run("DELETE FROM weir_meta WHERE key GLOB '\(key)*'")
    }

    /// Confines those of the edits that are not creations.
    ///
    /// Creations are those beneath which a row was pulled that the app has never seen, and those that follow a deletion in the batch. That the app
    /// had deleted the row stays known, by which a deletion that comes is known for its own.
    private func confine(_ side: String, in database: Database) throws {
        let masks = (0..<table.words).map { word in
            let bits = table.columns.filter { $0.word == word }.map { column in
                guard added.contains(where: { $0.number == column.number }) else { return "\(column.bit)" }
                return "(\(column.definition.differs("t.\(quoted(column.name))", "e.\(column.side)")) * \(column.bit))"
            }
            return bits.isEmpty ? "0" : bits.joined(separator: " | ")
        }
        let isDeletion =
            side == table.sent
            ? "e.deleted" : "EXISTS (SELECT 1 FROM \(table.sent) AS s WHERE s.id = e.id AND s.deleted)"
        let names = masks.indices.map { "m\($0)" }.joined(separator: ", ")
        let row = "FROM \(table.quotedName) AS t WHERE \(PendingRow.join(table))"
        // With a join it would be for SQLite to choose which of the two tables is read whole, and the app's may be large.
        try database.run(
            """
            UPDATE \(side) AS e SET (\(names)) = (SELECT \(masks.joined(separator: ", ")) \(row))
            WHERE e.m0 = -1 AND e.v0 = -1 AND e.base IS NOT 0 AND NOT \(isDeletion) AND EXISTS (SELECT 1 \(row))
            AND EXISTS (SELECT 1 FROM \(table.state) AS r WHERE r.id = e.id AND NOT r.deleted)
            """)
    }
}
