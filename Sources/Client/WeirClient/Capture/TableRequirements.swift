/// What Weir's connection needs to read and write a table of the app: what its indexes, foreign keys, defaults and triggers name.
///
/// Collations and functions of the app are known to its own connections. Where Weir's lacks one, no session could end.
struct TableRequirements {
    let table: CapturedTable

    /// Compiles what a session runs, with the triggers that it fires, and runs none of it.
    ///
    /// - Throws: `WeirError.unsupportedTable`.
    func check(in database: Database) throws {
        for key in table.definition.foreignKeys {
            try compile(
                "SELECT 1 FROM \(table.quotedName) AS t WHERE \(key.isUnmet)", in: database,
                "its foreign key to \(key.parent) cannot be looked up", mend: "correct the foreign key")
        }
        for column in [table.definition.key] + table.definition.columns where column.isNotNull {
            guard let value = column.defaultValue else { continue }
            try compile(
                "SELECT \(value)", in: database, "the default value of \(column.name) cannot be read",
                mend: "correct the default value")
        }
        let key = table.quotedKey
        let columns = table.columns.map { quoted($0.name) }
        let places = (["?1"] + columns.indices.map { "?\($0 + 2)" })
        let set = zip([key] + columns, places).dropFirst(columns.isEmpty ? 0 : 1).map { "\($0) = \($1)" }
        let statements = [
            "SELECT \(([key] + columns).joined(separator: ", ")) FROM \(table.quotedName) WHERE \(key) = ?1",
            "INSERT INTO \(table.quotedName) (\(([key] + columns).joined(separator: ", "))) VALUES (\(places.joined(separator: ", ")))",
            "UPDATE \(table.quotedName) SET \(set.joined(separator: ", ")) WHERE \(key) = ?1",
            "DELETE FROM \(table.quotedName) WHERE \(key) = ?1",
        ]
        for sql in statements {
            try compile(
                sql, in: database, "it cannot be written with a connection of Weir's",
                mend: "correct the index, the constraint or the trigger")
        }
    }

    private func compile(_ sql: String, in database: Database, _ problem: String, mend: String) throws {
        do {
            _ = try database.compile(sql)
        } catch let error as WeirError {
            guard error.isOfStatement, let message = error.refusal else { throw error }
            throw WeirError.unsupportedTable(
                name: table.name,
                reason: """
                    \(problem) (\(message)); \(mend), or register the collations and functions of the app that it needs \
                    with prepareConnection
                    """)
        }
    }
}
