import RelationalTables

/// A table as the migration creates it, and as the check at start requires it.
struct TableDefinition: Sendable {
    struct Column: Sendable {
        let name: String
        /// As Postgres's `format_type` returns it.
        let type: String
        let isNullable: Bool
        /// In SQL.
        let defaultValue: String?
        let isIdentity: Bool
        /// What an operator should know about it.
        let comment: String?
        /// The size limit of a value of a variable-length type, if there is one.
        let maximumBytes: Int?

        init(
            _ name: String, _ type: String, isNullable: Bool = false, defaultValue: String? = nil,
            isIdentity: Bool = false, comment: String? = nil, maximumBytes: Int? = nil
        ) {
            self.name = name
            self.type = type
            self.isNullable = isNullable
            self.defaultValue = defaultValue
            self.isIdentity = isIdentity
            self.comment = comment
            self.maximumBytes = maximumBytes
        }

        /// For `CREATE TABLE` and `ALTER TABLE … ADD COLUMN`.
        ///
        /// All texts compare by bytes, as ids do: joins need one order on both sides, and an index must not depend on the
        /// system's collations.
        var declaration: String {
            var text = "\(SQLText.name(name)) \(type)"
            if type == "text" { text += " COLLATE \"C\"" }
            if isIdentity { text += " GENERATED ALWAYS AS IDENTITY" }
            if let defaultValue { text += " DEFAULT \(defaultValue)" }
            if !isNullable { text += " NOT NULL" }
            return text
        }
    }

    /// The Postgres schema.
    let schema: String
    let name: String
    var columns: [Column]
    let primaryKey: [String]
    let comment: String
    /// Leaves space in each page, so that a row's next version fits beside it (HOT update) and no index changes.
    let fillFactor: Int

    var qualifiedName: String { "\(SQLText.name(schema)).\(SQLText.name(name))" }

    var creation: [String] {
        var lines = columns.map(\.declaration)
        lines.append("PRIMARY KEY (\(primaryKey.map(SQLText.name).joined(separator: ", ")))")
        let create =
            "CREATE TABLE \(qualifiedName) (\n    " + lines.joined(separator: ",\n    ")
            + "\n) WITH (fillfactor = \(fillFactor))"
        return [create, "COMMENT ON TABLE \(qualifiedName) IS \(SQLText.literal(comment))"]
            + columns.compactMap(commentStatement)
    }

    func addition(of column: Column) -> [String] {
        ["ALTER TABLE \(qualifiedName) ADD COLUMN \(column.declaration)"] + [commentStatement(column)].compactMap { $0 }
    }

    private func commentStatement(_ column: Column) -> String? {
        column.comment.map {
            "COMMENT ON COLUMN \(qualifiedName).\(SQLText.name(column.name)) IS \(SQLText.literal($0))"
        }
    }
}
