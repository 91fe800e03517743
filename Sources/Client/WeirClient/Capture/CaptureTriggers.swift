/// The triggers that record an app's changes of one table, as CREATE TRIGGER statements.
///
/// They run in whatever connection writes, so they use SQLite's own functions alone, and they only append to a log, which
/// has no constraint: no statement of the app fails or is altered because of them, whatever its conflict clause says.
/// What values are changed is recorded BEFORE, since triggers of the app may change the row again before any AFTER.
/// docs/adr/0039 gives the reasons.
struct CaptureTriggers {
    let table: CapturedTable

    /// By name.
    var statements: [(name: String, sql: String)] {
        var triggers = [
            trigger("insert", "AFTER INSERT", inserted),
            trigger("update", "BEFORE UPDATE", changed),
            trigger("delete", "BEFORE DELETE", deleted),
            trigger("key", "AFTER UPDATE OF \(keyNames)", keyChanged, if: isKeyChanged),
            trigger("move", "BEFORE UPDATE OF \(keyNames)", moved, if: isKeyChanged),
            replaced("replace", "BEFORE INSERT", besides: nil),
        ]
        let columns = table.definition.uniqueColumns.map {
            " OF " + ($0.sorted().map(quoted) + [keyNames]).joined(separator: ", ")
        }
        triggers.append(replaced("overwrite", "BEFORE UPDATE\(columns ?? "")", besides: "OLD"))
        return triggers
    }

    /// The prefix of the names of all triggers of a table.
    static func prefix(ofTable number: Int) -> String { "weir_\(number)_" }

    /// A condition for a trigger `s` of the file that a table `t` of `weir_table` has, by which the table is found when it was renamed.
    static let isOfTable = "s.type = 'trigger' AND s.name = 'weir_' || t.number || '_insert'"

    /// The triggers that are in the file, under this number.
    static func present(
        ofTable number: Int, in database: Database
    ) throws -> [(name: String, table: String, sql: String)] {
        let prefix = prefix(ofTable: number)
        return try database.map(
            "SELECT name, tbl_name, sql FROM sqlite_schema WHERE type = 'trigger' AND substr(name, 1, ?1) = ?2",
            [.integer(Int64(prefix.utf8.count)), .text(prefix)]
        ) { ($0.string(at: 0), $0.string(at: 1), $0.string(at: 2)) }
    }

    private func trigger(
        _ suffix: String, _ event: String, _ body: [String], if condition: String? = nil
    ) -> (name: String, sql: String) {
        let name = Self.prefix(ofTable: table.number) + suffix
        let conditions = ["NOT EXISTS (SELECT 1 FROM weir_applying)"] + (condition.map { ["(\($0))"] } ?? [])
        let statements = body.map { "\n    \($0);" }.joined()
        return (
            name,
            """
            CREATE TRIGGER \(name) \(event) ON \(table.quotedName)
            WHEN \(conditions.joined(separator: " AND "))
            BEGIN\(statements)
            END
            """
        )
    }

    // MARK: Bodies

    private var inserted: [String] {
        ["INSERT INTO \(table.log) (id, kind, at) VALUES (NEW.\(table.quotedKey), \(LogKind.insert.rawValue), \(now))"]
    }

    private var deleted: [String] { [whole(of: "OLD", .delete, from: "")] }

    private var moved: [String] { [whole(of: "OLD", .delete, from: "")] }

    /// The mask and the values before of the columns that change; nothing if none does.
    private var changed: [String] {
        if table.columns.isEmpty { return ["SELECT 1"] }
        let masks = (0..<table.words).map { word in
            let bits = table.columns.filter { $0.word == word }
                .map { "(\(differs($0.definition)) << \(($0.number - 1) % CapturedTable.bitsOfWord))" }
            return "\(bits.isEmpty ? "0" : bits.joined(separator: " | ")) AS m\(word)"
        }
        let words = (0..<table.words).map { "m\($0)" }
        let values = table.columns.map { "CASE WHEN m\($0.word) & \($0.bit) THEN OLD.\(quoted($0.name)) END" }
        return [
            """
            INSERT INTO \(table.log) (id, kind, at, \((words + table.columns.map(\.side)).joined(separator: ", "))) \
            SELECT OLD.\(table.quotedKey), \(LogKind.update.rawValue), \(now), \
            \((words + values).joined(separator: ", ")) FROM (SELECT \(masks.joined(separator: ", "))) \
            WHERE \(words.map { "\($0) <> 0" }.joined(separator: " OR "))
            """
        ]
    }

    /// Under another key the row is another row: the old one is deleted, and the new one inserted.
    private var keyChanged: [String] {
        let (key, log) = (table.quotedKey, table.log)
        return [
            "INSERT INTO \(log) (id, kind, at) VALUES (NEW.\(key), \(LogKind.insert.rawValue), \(now))",
            "INSERT INTO weir_key_change (tbl, old, new) VALUES (\(table.number), OLD.\(key), NEW.\(key))",
        ]
    }

    /// Records the rows that a conflict clause REPLACE would delete, for which SQLite fires no trigger.
    ///
    /// There are seldom any. That is seen by the condition, which costs less than statements that insert nothing.
    ///
    /// - Parameter own: the row that is being updated itself, if it is one.
    private func replaced(_ suffix: String, _ event: String, besides own: String?) -> (name: String, sql: String) {
        let victims = victims(besides: own)
        let exist = victims.map { "EXISTS (SELECT 1\($0))" }.joined(separator: " OR ")
        return trigger(suffix, event, victims.map { whole(of: "t", .replace, from: $0) }, if: exist)
    }

    /// Where rows are that are in the way of the new one, as `t`.
    private func victims(besides own: String?) -> [String] {
        let key = table.quotedKey
        let others = own.map { " AND t.\(key) IS NOT \($0).\(key)" } ?? ""
        // Without a collation of its own, the key is compared as the column is.
        let conditions =
            [(table.quotedName, "t.\(key) = \(new(table.definition.key.name))")]
            + table.definition.uniqueKeys.map { unique in
                // The names of an expression are those of this table, and no others.
                let expressions =
                    (unique.condition.map { ["(\($0.sql)\n)"] } ?? []) + unique.values.map(hasNewValue)
                let rows = "(SELECT * FROM \(table.quotedName) WHERE \(expressions.joined(separator: " AND ")))"
                let equal = unique.terms.map {
                    "t.\(quoted($0.column)) = \(new($0.column)) COLLATE \(quoted($0.collation))"
                }
                return (
                    expressions.isEmpty ? table.quotedName : rows,
                    equal.isEmpty ? "1" : equal.joined(separator: " AND ")
                )
            }
        return conditions.map { rows, condition in " FROM \(rows) AS t WHERE \(condition)\(others)" }
    }

    /// Whether a row of the table has the value of an expression that the new row has.
    private func hasNewValue(_ value: TableDefinition.UniqueKey.Value) -> String {
        let definition = table.definition
        let names = [definition.key.name] + definition.columns.map(\.name) + definition.generatedColumns
        let row = names.map { "\(new($0)) AS \(quoted($0))" }.joined(separator: ", ")
        let expression = "(\(value.expression.sql)\n)"
        // The collation is the index's, whatever it is in the expression: otherwise all rows would be read.
        return "\(expression) COLLATE \(quoted(value.collation)) = (SELECT \(expression) FROM (SELECT \(row)))"
    }

    /// The value that a row is going to have: REPLACE gives a column that may not be NULL its default in place of NULL.
    private func new(_ name: String) -> String {
        let value = "NEW.\(quoted(name))"
        let columns = [table.definition.key] + table.definition.columns
        let column = columns.first { foldedName($0.name) == foldedName(name) }
        // Connections that lack a function can insert rows with values of the column.
        guard let column, column.isNotNull, let byDefault = column.defaultValue, !column.mayCallByDefault else {
            return value
        }
        return "ifnull(\(value), \(byDefault))"
    }

    // MARK: Parts

    private func whole(of row: String, _ kind: LogKind, from source: String) -> String {
        let columns = (["id", "kind", "at"] + table.columns.map(\.side)).joined(separator: ", ")
        let key = "\(row).\(table.quotedKey)"
        let values = [key, "\(kind.rawValue)", now] + table.columns.map { "\(row).\(quoted($0.name))" }
        return "INSERT INTO \(table.log) (\(columns)) SELECT \(values.joined(separator: ", "))\(source)"
    }

    /// When the change was made: a Julian day, in milliseconds.
    private var now: String { "julianday('now')" }

    /// The key as UPDATE may name it: by its own name, or by a name of the rowid whose alias it is.
    private var keyNames: String { ([table.quotedKey] + ["rowid", "oid", "_rowid_"]).joined(separator: ", ") }

    private var isKeyChanged: String { differs(table.definition.key) }

    private func differs(_ column: TableDefinition.Column) -> String {
        let name = quoted(column.name)
        return column.differs("OLD.\(name)", "NEW.\(name)")
    }
}

extension TableDefinition.Column {
    /// 1 if two of its values are not the same, be it only in what its collation ignores, or 1 and 1.0.
    func differs(_ left: String, _ right: String) -> String {
        let difference = "\(left) IS NOT \(right) COLLATE BINARY"
        // Other affinities leave no two types in which values are equal.
        return affinity == .none ? "(\(difference) OR typeof(\(left)) <> typeof(\(right)))" : "(\(difference))"
    }
}
