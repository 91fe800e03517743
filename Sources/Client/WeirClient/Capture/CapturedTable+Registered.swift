extension CapturedTable {
    /// The tables whose changes are captured, or were before they were no longer listed, by their numbers; `nil` for one that is gone.
    ///
    /// One that was renamed since is found by its triggers.
    static func registered(in database: Database) throws -> [(number: Int, table: CapturedTable?)] {
        let known = try database.map(
            """
            SELECT t.number, coalesce(s.tbl_name, t.name), t.columns FROM weir_table AS t LEFT JOIN sqlite_schema AS s
            ON \(CaptureTriggers.isOfTable) ORDER BY t.number
            """
        ) {
            (number: Int($0.integer(at: 0)), name: $0.string(at: 1), columns: Int($0.integer(at: 2)))
        }
        return try known.map { table in
            let definition: TableDefinition
            do {
                definition = try TableDefinition(named: table.name, in: database)
            } catch WeirError.unsupportedTable {
                return (table.number, nil)
            }
            let numbers = Dictionary(
                try database.map(
                    "SELECT name, number FROM weir_column WHERE tbl = ?1 AND NOT dropped",
                    [.integer(Int64(table.number))]
                ) { (foldedName($0.string(at: 0)), Int($0.integer(at: 1))) }, uniquingKeysWith: { first, _ in first })
            // Columns that were added since have no numbers.
            let columns = definition.columns.compactMap { column in
                numbers[foldedName(column.name)].map { Column(number: $0, definition: column) }
            }
            let captured = CapturedTable(
                number: table.number, definition: definition, columns: columns, columnNumbers: table.columns)
            return (table.number, captured)
        }
    }
}
