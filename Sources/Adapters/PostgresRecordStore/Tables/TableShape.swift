/// How a table must look: what the migration makes, and what is looked for at the start.
struct TableShape: Sendable {
    struct Column: Sendable {
        let name: String
        /// The type as Postgres spells it.
        let type: String
        let isNullable: Bool
        /// How the column gets its value where none is given, in SQL; for tables' owners to see, and for older rows.
        var defaultValue: String?
        var isIdentity = false
        /// What an operator should know of it.
        let comment: String?
        /// How large a value may become in bytes, where that is known of a type of any size.
        var maximumBytes: Int?

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

        /// The column in `CREATE TABLE` and `ALTER TABLE … ADD COLUMN`.
        ///
        /// All texts compare by bytes, as ids do: joins need one order on both sides, and an index must not change with
        /// the system's rules for languages.
        var declaration: String {
            var text = "\(SQLText.name(name)) \(type)"
            if type == "text" { text += " COLLATE \"C\"" }
            if isIdentity { text += " GENERATED ALWAYS AS IDENTITY" }
            if let defaultValue { text += " DEFAULT \(defaultValue)" }
            if !isNullable { text += " NOT NULL" }
            return text
        }
    }

    /// The schema of Postgres that the table is in.
    let schema: String
    let name: String
    var columns: [Column]
    let primaryKey: [String]
    let comment: String
    /// Room that is left in each page, so that a row's next version finds its place beside it and no index changes.
    let fillFactor: Int

    /// The table's full name in SQL.
    var qualifiedName: String { "\(SQLText.name(schema)).\(SQLText.name(name))" }

    /// The statements that make the table.
    var creation: [String] {
        var lines = columns.map(\.declaration)
        lines.append("PRIMARY KEY (\(primaryKey.map(SQLText.name).joined(separator: ", ")))")
        let create =
            "CREATE TABLE \(qualifiedName) (\n    " + lines.joined(separator: ",\n    ")
            + "\n) WITH (fillfactor = \(fillFactor))"
        return [create, "COMMENT ON TABLE \(qualifiedName) IS \(SQLText.literal(comment))"]
            + columns.compactMap(commentStatement)
    }

    /// The statements that add a column.
    func addition(of column: Column) -> [String] {
        ["ALTER TABLE \(qualifiedName) ADD COLUMN \(column.declaration)"] + [commentStatement(column)].compactMap { $0 }
    }

    private func commentStatement(_ column: Column) -> String? {
        column.comment.map {
            "COMMENT ON COLUMN \(qualifiedName).\(SQLText.name(column.name)) IS \(SQLText.literal($0))"
        }
    }
}
