extension Schema {
    /// Keeps a schema in one small record.
    package static let maximumTables = 500
    /// With Weir's own columns still below the number of parameters that every store can bind in one statement.
    package static let maximumColumns = 250

    /// Makes the first schema version from declared tables, in their order.
    ///
    /// - Throws: ``SchemaRefusal`` with all problems.
    package init(declaring tables: [Table]) throws(SchemaRefusal) {
        let problems = Self.problems(in: tables)
        guard problems.isEmpty else { throw SchemaRefusal(problems: problems) }
        self.init(tables: tables)
    }

    /// Validates declared tables by themselves: names, counts, types, references.
    ///
    /// ``evolved(to:)`` validates them against an older version.
    package static func problems(in tables: [Table]) -> [SchemaProblem] {
        var problems: [SchemaProblem] = []
        if tables.isEmpty { problems.append(SchemaProblem(message: "declare at least one table")) }
        if tables.count > maximumTables {
            problems.append(
                SchemaProblem(message: "\(tables.count) tables are declared, at most \(maximumTables) may be"))
        }
        let index = NameIndex(tables.map(\.name))
        var names: [[UInt8]: String] = [:]
        for table in tables {
            if let message = nameProblem(table.name, others: &names, isReserved: isReservedTable) {
                problems.append(SchemaProblem(table: table.name, message: message))
            }
            problems += columnProblems(of: table, tables: index)
        }
        return problems + circles(among: tables, index)
    }

    private static func columnProblems(of table: Table, tables: NameIndex) -> [SchemaProblem] {
        var problems: [SchemaProblem] = []
        if table.columns.count > maximumColumns {
            let message = "\(table.columns.count) columns are declared, at most \(maximumColumns) may be"
            problems.append(SchemaProblem(table: table.name, message: message))
        }
        var names: [[UInt8]: String] = [:]
        for column in table.columns {
            func add(_ message: String) {
                problems.append(SchemaProblem(table: table.name, column: column.name, message: message))
            }
            if let message = nameProblem(column.name, others: &names, isReserved: isReservedColumn) { add(message) }
            if case .decimal(let precision, let scale) = column.type {
                if !(1...38).contains(precision) { add("a decimal's precision is 1 to 38, not \(precision)") }
                if scale < 0 || scale > precision {
                    add("a decimal's scale is 0 to its precision, \(precision), not \(scale)")
                }
            }
            if let length = column.maximumLength {
                if !column.type.hasLength {
                    add("the type \(column.type.name) has no maximum length: remove it")
                } else if length < 1 {
                    add("a maximum length is at least 1, not \(length)")
                }
            }
            if let value = column.defaultValue {
                if value.isEmpty {
                    add("a default is a JSON value, not empty")
                } else if !column.isNullable, value.elementsEqual("null".utf8) {
                    add("the default is null, but the column is not nullable: give another default, or none")
                }
            }
            if column.onDelete != nil, column.references == nil {
                add("onDelete says what becomes of references: add references, or remove it")
            }
            if column.onDelete != nil, column.type != .text, column.type != .uuid {
                add("onDelete is for columns of the types text and uuid, which have ids")
            }
            if let parent = column.references, tables.position(parent) == nil {
                add("references \(quoted(parent)), which is not a declared table")
            }
        }
        return problems
    }

    /// Names match `[A-Za-z_][A-Za-z0-9_]{0,62}`, are unique ignoring case (stores fold it), and are not reserved.
    private static func nameProblem(
        _ name: String, others: inout [[UInt8]: String], isReserved: (_ folded: [UInt8]) -> Bool
    ) -> String? {
        guard isName(name) else {
            return
                "\(quoted(name)) is not a valid name: use a letter or _, then at most 62 letters, digits or _ (ASCII)"
        }
        let folded = name.utf8.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }
        if isReserved(folded) { return "the name \(name) is reserved: choose another" }
        if let other = others.updateValue(name, forKey: folded) {
            return other.utf8.elementsEqual(name.utf8)
                ? "\(name) is declared twice"
                : "\(name) and \(other) differ only in case, which stores ignore: rename one"
        }
        return nil
    }

    private static func isName(_ name: String) -> Bool {
        func isLetter(_ byte: UInt8) -> Bool {
            (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte) || byte == 0x5F
        }
        guard let first = name.utf8.first, isLetter(first), name.utf8.count <= 63 else { return false }
        return name.utf8.allSatisfy { isLetter($0) || (0x30...0x39).contains($0) }
    }

    /// Prefixes of the tables of Weir and of the stores.
    private static func isReservedTable(_ folded: [UInt8]) -> Bool {
        ["weir_", "sqlite_", "pg_"].contains { folded.starts(with: $0.utf8) }
    }

    /// Weir's own columns, and the system columns of Postgres.
    private static func isReservedColumn(_ folded: [UInt8]) -> Bool {
        folded.starts(with: "weir_".utf8) || reservedColumns.contains { folded.elementsEqual($0.utf8) }
    }

    private static let reservedColumns = [
        "id", "sync_id", "knowledge_id", "time_stamp", "version", "deleted", "created_at", "updated_at",
        "tableoid", "xmin", "cmin", "xmax", "cmax", "ctid",
    ]

    /// Quotes a name from outside for a message; control characters are escaped.
    private static func quoted(_ name: String) -> String {
        "\"" + name.unicodeScalars.map { $0.escaped(asASCII: false) }.joined() + "\""
    }

    /// Finds reference cycles of several tables, in which no order of writes puts parents first.
    ///
    /// A table may reference itself.
    private static func circles(among tables: [Table], _ index: NameIndex) -> [SchemaProblem] {
        // Bounds the recursion below; a schema of more tables is already rejected.
        guard tables.count <= maximumTables else { return [] }
        let parents = tables.enumerated().map { position, table in
            Set(table.columns.compactMap(\.references).compactMap(index.position)).subtracting([position]).sorted()
        }
        var problems: [SchemaProblem] = []
        var isDone = Array(repeating: false, count: tables.count)
        var path: [Int] = []
        func visit(_ table: Int) {
            if let start = path.firstIndex(of: table) {
                let names = (path[start...] + [table]).map { tables[$0].name }.joined(separator: " -> ")
                let message = "the tables reference each other in a cycle, \(names): remove one of the references"
                problems.append(SchemaProblem(table: tables[table].name, message: message))
                return
            }
            guard !isDone[table] else { return }
            path.append(table)
            for parent in parents[table] { visit(parent) }
            path.removeLast()
            isDone[table] = true
        }
        for table in tables.indices { visit(table) }
        return problems
    }
}

/// A problem of a declared schema, with table and column, from which the reader of a file finds the line.
package struct SchemaProblem: Sendable, Hashable, CustomStringConvertible {
    /// As spelled in the declaration or the previous version; `nil` for a problem of the whole schema.
    package let table: String?
    /// `nil` for a problem of the whole table.
    package let column: String?
    package let message: String

    package init(table: String? = nil, column: String? = nil, message: String) {
        self.table = table
        self.column = column
        self.message = message
    }

    package var description: String {
        switch (table, column) {
        case (let table?, let column?): "\(table).\(column): \(message)"
        case (let table?, nil): "\(table): \(message)"
        default: message
        }
    }
}

/// A declaration was rejected.
///
/// Lists every problem, at least one, in the order of the declaration.
package struct SchemaRefusal: Error, Sendable, Hashable, CustomStringConvertible {
    package let problems: [SchemaProblem]

    package init(problems: [SchemaProblem]) {
        precondition(!problems.isEmpty, "a refusal has a reason")
        self.problems = problems
    }

    package var description: String { problems.map(\.description).joined(separator: "\n") }
}
