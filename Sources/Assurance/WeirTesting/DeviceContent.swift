import WeirClient

/// The rows of a device's synced tables, with each value in the one form that the server has of it.
package struct DeviceContent: Sendable, Equatable {
    /// By column; the key's is among them.
    package typealias Row = [String: String]

    /// By table, and then by the row's key.
    package private(set) var tables: [String: [String: Row]] = [:]

    /// Reads all rows of the tables.
    package init(of names: [String], in database: Database, _ forms: ValueForms = ValueForms([])) throws {
        for name in names {
            let key = try database.map("SELECT name FROM pragma_table_info(?1) WHERE pk = 1", [.text(name)]) {
                $0.string(at: 0)
            }
            guard let key = key.first else { continue }
            var rows: [String: Row] = [:]
            try database.rows("SELECT * FROM \(quoted(name))") { row in
                var values: Row = [:]
                var id = ""
                for index in 0..<row.count {
                    let (column, value) = (row.name(at: index), row.value(at: index))
                    values[column] = forms.text(of: value, table: name, column: column)
                    if column == key { id = value.string ?? value.description }
                }
                rows[id] = values
            }
            tables[name] = rows
        }
    }

    /// The rows of all tables.
    package var count: Int { tables.values.reduce(0) { $0 + $1.count } }

    /// Where two devices differ, a line for each row or value: `todo t1, done: phone has 1, tablet has 0`.
    ///
    /// - Parameter most: lines; a last one says how many more there are.
    package static func differences(
        _ first: (name: String, content: DeviceContent), _ second: (name: String, content: DeviceContent),
        most: Int = 20
    ) -> [String] {
        var lines: [String] = []
        let tables = Set(first.content.tables.keys).union(second.content.tables.keys)
        for table in tables.sorted() {
            let (left, right) = (first.content.tables[table] ?? [:], second.content.tables[table] ?? [:])
            for key in Set(left.keys).union(right.keys).sorted() where left[key] != right[key] {
                guard let one = left[key] else {
                    lines.append("\(table) \(key): \(first.name) lacks it, \(second.name) has it")
                    continue
                }
                guard let other = right[key] else {
                    lines.append("\(table) \(key): \(first.name) has it, \(second.name) lacks it")
                    continue
                }
                for column in Set(one.keys).union(other.keys).sorted() where one[column] != other[column] {
                    lines.append(
                        "\(table) \(key), \(column): \(first.name) has \(one[column] ?? "no such column"), "
                            + "\(second.name) has \(other[column] ?? "no such column")")
                }
            }
        }
        if lines.count > most { lines[most...] = ["and \(lines.count - most) more"] }
        return lines
    }
}
