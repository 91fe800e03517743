/// Which rows of a table have edits to send, in the order in which they are sent.
struct PendingKeys {
    enum Kind {
        /// Rows that exist: parents before those that reference them.
        case written
        /// Rows that are gone: those that reference others before these.
        case deleted
    }

    let table: CapturedTable
    let kind: Kind

    /// How many keys of a table that does not reference itself are read at once.
    static let page = 500

    /// Passes the keys to a closure until it returns false.
    ///
    /// - Returns: whether all were passed.
    func forEach(in database: Database, _ body: (SQLValue) throws -> Bool) throws -> Bool {
        let own = table.definition.references.filter { foldedName($0.parent) == foldedName(table.name) }
        if !own.isEmpty { return try keys(orderedBy: own, in: database).allSatisfy(body) }
        var last: SQLValue?
        while true {
            let page = try database.map(
                "SELECT e.id FROM \(source) \(last == nil ? "" : "AND e.id > ?1") ORDER BY e.id LIMIT \(Self.page)",
                last.map { [$0] } ?? []
            ) { $0.value(at: 0) }
            guard let end = page.last else { return true }
            guard try page.allSatisfy(body) else { return false }
            last = end
        }
    }

    /// The keys of a table that references itself; deleted rows reference what they did before.
    private func keys(orderedBy own: [TableDefinition.Reference], in database: Database) throws -> [SQLValue] {
        let columns = table.columns.filter { column in own.contains { foldedName($0.column) == foldedName(column.name) }
        }
        let parents = columns.map { kind == .written ? "t.\(quoted($0.name))" : "e.\($0.side)" }
        let rows = try database.map(
            "SELECT \((["e.id"] + parents).joined(separator: ", ")) FROM \(source) ORDER BY e.id"
        ) { row in (key: row.value(at: 0), parents: columns.indices.map { row.value(at: 1 + $0) }) }
        let ordered = TableOrder.parentsFirst(rows)
        return kind == .written ? ordered : ordered.reversed()
    }

    /// The edits, without those of rows whose keys changed, which are sent together.
    private var source: String {
        let row = "EXISTS (SELECT 1 FROM \(table.quotedName) AS t WHERE \(PendingRow.join(table)))"
        // CROSS JOIN reads the edits first: without statistics, SQLite might read the whole table.
        let source =
            kind == .written
            ? "\(table.edit) AS e CROSS JOIN \(table.quotedName) AS t ON \(PendingRow.join(table)) WHERE 1"
            : "\(table.edit) AS e WHERE NOT \(row)"
        // Without the plus, the key's affinity keeps SQLite from using the indexes.
        return source
            + ["old", "new"].map {
                """
                 AND NOT EXISTS (SELECT 1 FROM weir_key_change AS k
                WHERE k.tbl = \(table.number) AND k.\($0) = +e.id AND NOT k.sent)
                """
            }.joined()
    }
}
