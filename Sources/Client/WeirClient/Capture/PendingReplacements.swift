/// Edits by which rows of the server are replaced whole, as by INSERT OR REPLACE, and which are pending when columns are added.
///
/// They mean every column that the table had, and none of the new ones, of which the server may have values: they become changes of
/// those columns.
struct PendingReplacements {
    let table: CapturedTable
    /// The new columns.
    let added: [CapturedTable.Column]

    /// Confines them to the columns that there were, as part of the open transaction.
    ///
    /// Those beneath which a row was pulled that the app has never seen are creations. Those that may have arrived in a batch stay whole
    /// as well, by which a deletion that comes is known for their own.
    func confine(in database: Database) throws {
        try LogFolding(table: table).fold(in: database)
        let columns = table.columns.filter { column in !added.contains { $0.number == column.number } }
        let words = (0..<table.words).map { word in
            let mask = columns.filter { $0.word == word }.reduce(Int64(0)) { $0 | $1.bit }
            return "m\(word) = \(mask), v\(word) = \(mask)"
        }
        try database.run(
            """
            UPDATE \(table.edit) AS e SET \(words.joined(separator: ", "))
            WHERE m0 = -1 AND v0 = -1 AND base IS NOT 0 AND was_sent IS NOT 1
            AND EXISTS (SELECT 1 FROM \(table.state) AS r WHERE r.id = e.id AND NOT r.deleted)
            AND EXISTS (SELECT 1 FROM \(table.quotedName) AS t WHERE \(PendingRow.join(table)))
            AND NOT EXISTS (SELECT 1 FROM \(table.sent) AS s WHERE s.id = e.id)
            """)
    }
}
