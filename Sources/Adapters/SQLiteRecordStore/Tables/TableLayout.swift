import CanonicalValues
import SyncModel

/// The SQL of one table of rows.
///
/// It has a rowid and its key in an index: rows come with random ids, and an index of keys alone has far fewer pages to
/// change than a tree of whole rows. Texts compare by bytes, SQLite's own order (BINARY).
struct TableLayout: Sendable {
    /// The table with the columns of the newest version prepared.
    let table: Table

    init(_ table: Table) {
        self.table = table
    }

    /// The name in SQL: names hold letters, digits and `_` only, but may be SQL's own words.
    var name: String { quoted(table.name) }

    /// The statement that makes the table with its first `count` columns.
    ///
    /// A column that comes later goes behind the others here as well, so that a table that was extended has the same text
    /// as one made at once.
    func creation(columns count: Int) throws(CanonicalValueError) -> String {
        var lines = RowColumns.declarations
        for column in table.columns.prefix(count) { lines.append(try declaration(of: column)) }
        lines.append("PRIMARY KEY (sync_id, id)")
        return "CREATE TABLE \(name) (\n    " + lines.joined(separator: ",\n    ") + "\n) STRICT"
    }

    /// The statement that adds a column to the table.
    func addition(of column: Column) throws(CanonicalValueError) -> String {
        "ALTER TABLE \(name) ADD COLUMN \(try declaration(of: column))"
    }

    private func declaration(of column: Column) throws(CanonicalValueError) -> String {
        var text = "\(quoted(column.name)) \(Self.storageType(of: column.type))"
        if !column.isNullable { text += " NOT NULL" }
        if let literal = try DefaultLiteral.sql(of: column) { text += " DEFAULT \(literal)" }
        return text
    }

    /// The type that SQLite enforces (STRICT): what has a spelling of its own is kept as its canonical text.
    static func storageType(of type: ColumnType) -> String {
        switch type {
        case .integer, .boolean: "INTEGER"
        case .real: "REAL"
        case .bytes: "BLOB"
        case .text, .decimal, .uuid, .timestamp, .date, .json: "TEXT"
        }
    }

    /// Writes a row with its first `count` values; of a row that exists, the columns behind them stay.
    func upsert(columns count: Int) -> String {
        let names = RowColumns.names + table.columns.prefix(count).map { quoted($0.name) }
        let parameters = names.indices.map { "?\($0 + 1)" }
        let updates = names.dropFirst(RowColumns.keyCount).map { "\($0) = excluded.\($0)" }
        return """
            INSERT INTO \(name) (\(names.joined(separator: ", "))) VALUES (\(parameters.joined(separator: ", ")))
            ON CONFLICT (sync_id, id) DO UPDATE SET \(updates.joined(separator: ", "))
            """
    }

    /// Looks a row up by sync_id and id: Weir's columns behind the key, then the first `count` values.
    func lookUp(columns count: Int) -> String {
        "SELECT \(readColumns(count).joined(separator: ", ")) FROM \(name) WHERE sync_id = ?1 AND id = ?2"
    }

    /// All rows of one owner by timeStamp: as `lookUp`, with the id at the end.
    func scan(columns count: Int) -> String {
        let names = readColumns(count) + ["id"]
        return "SELECT \(names.joined(separator: ", ")) FROM \(name) WHERE sync_id = ?1 ORDER BY time_stamp"
    }

    private func readColumns(_ count: Int) -> [String] {
        RowColumns.names.dropFirst(RowColumns.keyCount) + table.columns.prefix(count).map { quoted($0.name) }
    }

    private func quoted(_ name: String) -> String { "\"\(name)\"" }
}
