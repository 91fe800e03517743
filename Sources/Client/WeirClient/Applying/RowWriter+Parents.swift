/// Rows whose foreign keys name rows that are not there.
extension RowWriter {
    /// Records a row that is in the table and names a parent that is not.
    func recordIfOrphan(_ key: SQLValue) throws {
        try selectOrphan?.rows([key]) { _ in try OrphanRows.record(key, of: table, in: database) }
    }

    /// Whether each parent that a row names is there, before the row is written.
    func hasParents(_ row: ServerRow) throws -> Bool {
        if table.definition.foreignKeys.isEmpty { return true }
        let given = named(try rowValues(row.values, like: nil))
        let id = table.definition.keyKind.key(ofID: row.id) ?? .null
        func value(_ column: String) -> SQLValue {
            if foldedName(column) == foldedName(table.definition.key.name) { return id }
            return given.first { foldedName($0.column.name) == foldedName(column) }?.value ?? .null
        }
        return try table.definition.foreignKeys.allSatisfy { key in
            let values = key.columns.map(value)
            if values.contains(.null) { return true }
            // A row may name itself.
            if key.namesKey(of: table), values == [id] { return true }
            let equal = key.parentColumns.enumerated().map { "\(quoted($1)) = ?\($0 + 1)" }
            let parent = "SELECT 1 FROM \(quoted(key.parent)) WHERE \(equal.joined(separator: " AND "))"
            return try database.value(parent, values) != nil
        }
    }
}
