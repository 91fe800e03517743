/// What rows have in columns in which the app permits no NULL, where the server has no value: the column's default.
///
/// The server sends NULL for what nobody has set, as in rows of an older app that does not have the column.
extension RowWriter {
    /// The values of a row whose values at the server these are, by the columns: what is left out is NULL there.
    ///
    /// A default that may be another one each time is left to SQLite, so that a row that is there keeps its own. A column that permits no NULL,
    /// and has no default, is as the server has it.
    func whole(_ values: [SQLValue?]) -> [SQLValue?] {
        values.indices.map { index in
            if let value = values[index], value != .null { return value }
            let column = columns[index].column
            guard let value = defaults[column.number] else {
                return values[index] ?? (column.definition.isNotNull ? nil : .null)
            }
            return column.definition.hasVaryingDefault ? nil : value
        }
    }

    /// Values that the table can have.
    ///
    /// An edit has NULL as the value before where the server has none, and where the column was added since.
    func permitted(_ values: [NamedValue]) -> [NamedValue] {
        values.map { column, value in (column, value == .null ? defaults[column.number] ?? .null : value) }
    }

    /// The defaults of columns that permit no NULL, by the columns' numbers.
    static func defaults(of table: CapturedTable, in database: Database) throws -> [Int: SQLValue] {
        var defaults: [Int: SQLValue] = [:]
        for column in table.columns where column.definition.isNotNull {
            guard let expression = column.definition.defaultValue else { continue }
            do {
                defaults[column.number] = try database.value(column.definition.affinity.storing(expression))
            } catch let error as WeirError where error.isOfStatement {
                // A function of the app fails, for instance. A row without a value waits then.
            }
        }
        return defaults
    }
}

extension TableDefinition.Column {
    /// Whether its default may call a function, or is the present time.
    fileprivate var hasVaryingDefault: Bool {
        mayCallByDefault || defaultValue.map { foldedName($0).hasPrefix("current_") } ?? false
    }
}

extension Affinity {
    /// A query for the value of an expression as a column of this affinity stores it.
    fileprivate func storing(_ expression: String) -> String {
        // For a comparison SQLite converts a value as for storing it.
        let stored =
            switch self {
            case .none: "d"
            case .text: "CASE WHEN typeof(d) IN ('integer', 'real') THEN CAST(d AS TEXT) ELSE d END"
            case .integer, .numeric: "CASE WHEN d = CAST(d AS NUMERIC) THEN CAST(d AS NUMERIC) ELSE d END"
            case .real: "CASE WHEN d = CAST(d AS REAL) THEN CAST(d AS REAL) ELSE d END"
            }
        return "SELECT \(stored) FROM (SELECT \(expression) AS d)"
    }
}
