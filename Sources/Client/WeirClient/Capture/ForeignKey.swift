/// A foreign key of a table: a row that has a value in each of its columns names a row of the parent.
struct ForeignKey: Equatable {
    let columns: [String]
    let parent: String
    /// Those that the columns are compared with.
    let parentColumns: [String]

    /// The foreign keys of a table, without those whose parent table does not exist.
    static func all(of table: String, in database: Database) throws -> [ForeignKey] {
        var found: [(number: Int64, parent: String, columns: [String], targets: [String])] = []
        try database.rows(
            #"SELECT id, "table", "from", coalesce("to", '') FROM pragma_foreign_key_list(?1) ORDER BY id, seq"#,
            [.text(table)]
        ) { row in
            if found.last?.number != row.integer(at: 0) {
                found.append((row.integer(at: 0), row.string(at: 1), [], []))
            }
            found[found.count - 1].columns.append(row.string(at: 2))
            found[found.count - 1].targets.append(row.string(at: 3))
        }
        return try found.compactMap { key in
            let columns = try database.map(
                "SELECT name, pk > 0 FROM pragma_table_xinfo(?1) ORDER BY pk", [.text(key.parent)]
            ) { (name: $0.string(at: 0), isKey: $0.integer(at: 1) == 1) }
            if columns.isEmpty { return nil }
            // Without columns it is the parent's primary key that is named.
            let targets = key.targets.contains("") ? columns.filter(\.isKey).map(\.name) : key.targets
            guard targets.count == key.columns.count else { return nil }
            return ForeignKey(columns: key.columns, parent: key.parent, parentColumns: targets)
        }
    }

    /// Whether it is one column that names the primary key of its parent.
    func namesKey(of table: CapturedTable) -> Bool {
        isReference(to: table) && parentColumns.map(foldedName) == [foldedName(table.definition.key.name)]
    }

    func isReference(to table: CapturedTable) -> Bool { foldedName(parent) == foldedName(table.name) }

    /// Whether the row `t` names a parent that is not there.
    var isUnmet: String {
        let set = columns.map { "t.\(quoted($0)) IS NOT NULL" }
        // On the left is the parent's column, whose collation counts.
        let equal = zip(parentColumns, columns).map { "p.\(quoted($0)) = t.\(quoted($1))" }
        return """
            (\(set.joined(separator: " AND ")) AND NOT EXISTS (SELECT 1 FROM \(quoted(parent)) AS p
            WHERE \(equal.joined(separator: " AND "))))
            """
    }
}

extension CapturedTable {
    /// Whether the row `t` names a parent that is not there; `nil` for a table without foreign keys.
    var isOrphan: String? {
        let keys = definition.foreignKeys
        return keys.isEmpty ? nil : keys.map(\.isUnmet).joined(separator: " OR ")
    }
}
