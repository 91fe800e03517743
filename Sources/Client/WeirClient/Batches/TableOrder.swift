/// The order of tables in which each comes after those that it references.
enum TableOrder {
    /// Tables that reference each other in a circle are in the order given.
    static func parentsFirst(_ tables: [CapturedTable]) -> [CapturedTable] {
        let byName = Dictionary(
            tables.map { (foldedName($0.name), $0) }, uniquingKeysWith: { first, _ in first })
        var ordered: [CapturedTable] = []
        var visited: Set<Int> = []
        // A table is added after its parents; what is on its path already is a circle.
        func visit(_ table: CapturedTable) {
            guard visited.insert(table.number).inserted else { return }
            for reference in table.definition.references {
                if let parent = byName[foldedName(reference.parent)] { visit(parent) }
            }
            ordered.append(table)
        }
        for table in tables { visit(table) }
        return ordered
    }

    /// Rows of a table that references itself, in an order in which each comes after the row that it references.
    ///
    /// - Parameter rows: the rows, and what each references, if anything.
    static func parentsFirst(_ rows: [(key: SQLValue, parents: [SQLValue])]) -> [SQLValue] {
        let parents = Dictionary(rows.map { ($0.key, $0.parents) }, uniquingKeysWith: { first, _ in first })
        var ordered: [SQLValue] = []
        var visited: Set<SQLValue> = []
        for row in rows {
            // Chains may be long, so they are followed without recursion.
            var path = [(key: row.key, isExpanded: false)]
            while let (key, isExpanded) = path.popLast() {
                if isExpanded {
                    ordered.append(key)
                } else if let parents = parents[key], visited.insert(key).inserted {
                    path.append((key, true))
                    for parent in parents { path.append((parent, false)) }
                }
            }
        }
        return ordered
    }
}
