extension Schema {
    /// The next version when tables are declared again, in the order of their file.
    ///
    /// Tables and columns keep their indexes and new ones are appended, so that rows and records of every older version
    /// can be read under the new one. Allowed are new tables; new columns that are nullable or have a default; a
    /// greater or removed maximum length; another policy; other references, and another rule for deletes. The order of
    /// declaration does not matter.
    ///
    /// - Returns: the next version; equal to this one when nothing changed.
    /// - Throws: ``SchemaRefusal`` with all problems of the declaration by itself and as the next version.
    package func evolved(to declared: [Table]) throws(SchemaRefusal) -> Schema {
        var problems = Self.problems(in: declared)
        let index = NameIndex(declared.map(\.name))
        var resolved: [Table] = []
        for table in tables {
            guard let position = index.position(table.name) else {
                let message = "the table was removed, but devices hold its rows: declare it again"
                problems.append(SchemaProblem(table: table.name, message: message))
                continue
            }
            resolved.append(table.evolved(to: declared[position], &problems))
        }
        let known = NameIndex(tables.map(\.name))
        resolved += declared.filter { known.position($0.name) == nil }
        guard problems.isEmpty else { throw SchemaRefusal(problems: problems) }
        return Schema(tables: resolved)
    }
}

extension Table {
    fileprivate func evolved(to declared: Table, _ problems: inout [SchemaProblem]) -> Table {
        var resolved: [Column] = []
        for column in columns {
            guard let position = declared.position(of: column) else {
                let message = "the column was removed, but rows hold its values: declare it again"
                problems.append(SchemaProblem(table: name, column: column.name, message: message))
                continue
            }
            let new = declared.columns[position]
            problems += column.problems(evolvingTo: new).map {
                SchemaProblem(table: name, column: column.name, message: $0)
            }
            resolved.append(new)
        }
        for column in declared.columns where position(of: column) == nil {
            if column.isRequired {
                let message = "a new column is nullable or has a default, since older rows have no value of it"
                problems.append(SchemaProblem(table: name, column: column.name, message: message))
            }
            resolved.append(column)
        }
        return Table(name: name, policy: declared.policy, columns: resolved)
    }

    private func position(of column: Column) -> Int? {
        var name = column.name
        return name.withUTF8 { self.column(named: $0.span.bytes) }
    }
}

extension Column {
    /// Why this column cannot be changed to the other one, each with what to do.
    fileprivate func problems(evolvingTo new: Column) -> [String] {
        var problems: [String] = []
        if new.type != type {
            problems.append(
                "the type changed from \(type.name) to \(new.type.name), but older rows have the old type: restore "
                    + "\(type.name), or add a new column")
        }
        if new.isNullable != isNullable {
            let (was, remedy) =
                isNullable
                ? ("nullable, and rows may hold NULL", "make it nullable again")
                : ("not nullable, and devices rely on that", "make it not nullable again")
            problems.append("the column was \(was): \(remedy), or add a new column")
        }
        if new.defaultValue != defaultValue {
            let reason = "records of older versions would produce different rows"
            switch (defaultValue, new.defaultValue) {
            case (let old?, nil):
                problems.append("the default was removed, and \(reason): restore \(Self.text(old))")
            case (let old?, let new?):
                problems.append(
                    "the default changed from \(Self.text(old)) to \(Self.text(new)), and \(reason): restore it")
            default:
                problems.append("a default was added, and \(reason): remove it, or add a new column")
            }
        }
        if let length = new.maximumLength {
            if let old = maximumLength {
                if length < old {
                    problems.append(
                        "the maximum length was reduced from \(old) to \(length), and rows may be longer: restore "
                            + "\(old) or more")
                }
            } else {
                problems.append("a maximum length was added, and rows may be longer: remove it")
            }
        }
        return problems
    }

    private static func text(_ json: [UInt8]) -> String { String(decoding: json, as: UTF8.self) }
}
