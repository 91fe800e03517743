import CanonicalValues
import RelationalTables
import SyncModel

/// The SQL of one table of rows.
///
/// It has a rowid and an index of its key: row ids are random, and an index of keys alone has far fewer pages to change than a
/// B-tree of whole rows. Texts compare by bytes, SQLite's default (BINARY).
struct TableLayout: RowTableLayout {
    let table: Table
    /// ``upsert(columns:)`` and ``lookup(columns:)`` with all columns, which nearly every step needs.
    private let upsertOfAll: String
    private let lookupOfAll: String

    init(_ table: Table) {
        self.table = table
        upsertOfAll = Self.upsert(into: table, columns: table.columns.count)
        lookupOfAll = Self.lookup(in: table, columns: table.columns.count)
    }

    /// Quoted: names hold only letters, digits and `_`, but may be SQL keywords.
    var name: String { SQLText.name(table.name) }

    /// Creates the table with its first `count` columns.
    ///
    /// Later columns follow the others here too, so that an extended table has the same text as a new one.
    func creation(columns count: Int) throws(CanonicalValueError) -> String {
        var lines = RowColumns.all.map { column in
            "\(column.name) \(column.type == .text ? "TEXT" : "INTEGER")\(column.isNullable ? "" : " NOT NULL")"
        }
        for column in table.columns.prefix(count) { lines.append(try declaration(of: column)) }
        lines.append("PRIMARY KEY (sync_id, id)")
        return "CREATE TABLE \(name) (\n    " + lines.joined(separator: ",\n    ") + "\n) STRICT"
    }

    func addition(of column: Column) throws(CanonicalValueError) -> String {
        "ALTER TABLE \(name) ADD COLUMN \(try declaration(of: column))"
    }

    private func declaration(of column: Column) throws(CanonicalValueError) -> String {
        var text = "\(SQLText.name(column.name)) \(Self.storageType(of: column.type))"
        if !column.isNullable { text += " NOT NULL" }
        if let literal = try Self.defaultLiteral(of: column) { text += " DEFAULT \(literal)" }
        return text
    }

    static func defaultLiteral(of column: Column) throws(CanonicalValueError) -> String? {
        try column.defaultLiteral { value in
            switch value {
            case .null: nil
            case .integer(let integer): "\(integer)"
            case .real(let real): "\(real)"
            case .text(let text): try SQLText.literal(utf8: text)
            case .bytes(let bytes):
                "X'\(bytes.withUnsafeBufferPointer { SQLText.hexadecimal($0, uppercase: true) })'"
            }
        }
    }

    /// The type that SQLite enforces (STRICT); types that SQLite does not have are stored as canonical text.
    static func storageType(of type: ColumnType) -> String {
        switch type {
        case .integer, .boolean: "INTEGER"
        case .real: "REAL"
        case .bytes: "BLOB"
        case .text, .decimal, .uuid, .timestamp, .date, .json: "TEXT"
        }
    }

    /// Writes a row with its first `count` values; later columns of an existing row keep their values.
    func upsert(columns count: Int) -> String {
        count == table.columns.count ? upsertOfAll : Self.upsert(into: table, columns: count)
    }

    private static func upsert(into table: Table, columns count: Int) -> String {
        let names = RowColumns.names + table.columns.prefix(count).map { SQLText.name($0.name) }
        let parameters = names.indices.map { "?\($0 + 1)" }
        let updates = names.dropFirst(RowColumns.keyCount).map { "\($0) = excluded.\($0)" }
        return """
            INSERT INTO \(SQLText.name(table.name)) (\(names.joined(separator: ", "))) VALUES (\(parameters.joined(separator: ", ")))
            ON CONFLICT (sync_id, id) DO UPDATE SET \(updates.joined(separator: ", "))
            """
    }

    /// Selects a row by sync_id and id: Weir's columns behind the key, then the first `count` values.
    func lookup(columns count: Int) -> String {
        count == table.columns.count ? lookupOfAll : Self.lookup(in: table, columns: count)
    }

    private static func lookup(in table: Table, columns count: Int) -> String {
        """
        SELECT \(readColumns(of: table, count).joined(separator: ", ")) FROM \(SQLText.name(table.name)) \
        WHERE sync_id = ?1 AND id = ?2
        """
    }

    /// Selects all rows of one owner by timeStamp: the columns of `lookup`, then the id.
    func scan(columns count: Int) -> String {
        let names = Self.readColumns(of: table, count) + ["id"]
        return "SELECT \(names.joined(separator: ", ")) FROM \(name) WHERE sync_id = ?1 ORDER BY time_stamp"
    }

    private static func readColumns(of table: Table, _ count: Int) -> [String] {
        RowColumns.names.dropFirst(RowColumns.keyCount) + table.columns.prefix(count).map { SQLText.name($0.name) }
    }
}
