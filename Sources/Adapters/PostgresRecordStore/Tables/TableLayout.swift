import CanonicalValues
import Postgres
import RelationalTables
import SyncModel

/// The SQL of one table of rows.
struct TableLayout: RowTableLayout {
    let table: Table
    private let schema: String
    /// The literals of the columns' defaults.
    private let defaults: [String?]

    /// - Throws: `CanonicalValueError` if a default is no value of its column.
    init(_ table: Table, schema: String) throws(CanonicalValueError) {
        self.table = table
        self.schema = schema
        var defaults: [String?] = []
        for column in table.columns { defaults.append(try Self.defaultLiteral(of: column)) }
        self.defaults = defaults
    }

    private static func defaultLiteral(of column: Column) throws(CanonicalValueError) -> String? {
        func cast(_ literal: String) -> String { "\(literal)::\(column.type.postgresName)" }
        return try column.defaultLiteral { value in
            switch value {
            case .null: nil
            case .integer(let integer) where column.type == .boolean: integer == 0 ? "false" : "true"
            case .integer(let integer): cast("'\(integer)'")
            case .real(let real): cast("'\(real)'")
            case .text(let text): cast(try SQLText.literal(utf8: text))
            case .bytes(let bytes): SQLText.bytea(bytes.withUnsafeBufferPointer(Array.init))
            }
        }
    }

    /// The table with its first `count` columns.
    func definition(columns count: Int) -> TableDefinition {
        TableDefinition(
            schema: schema, name: table.name,
            columns: RowColumns.all.map(TableDefinition.Column.init) + (0..<count).map(definition),
            primaryKey: ["sync_id", "id"],
            comment: "Rows of \(table.name) that devices sync; written by Weir alone", fillFactor: 90)
    }

    func definition(ofColumn index: Int) -> TableDefinition.Column {
        let column = table.columns[index]
        return TableDefinition.Column(
            column.name, column.type.postgresName, isNullable: column.isNullable, defaultValue: defaults[index],
            comment: column.references.map { "Id of a row of \($0)" },
            // A character has at most four bytes.
            maximumBytes: column.maximumLength.map { column.type == .text ? $0 * 4 : $0 })
    }

    /// Writes many rows with their first `count` values, each column as an array; later columns of an existing row keep their
    /// values.
    ///
    /// - Parameter areNew: whether none of the rows exists, which saves Postgres the conflict check.
    func write(columns count: Int, areNew: Bool) -> String {
        let written = RowColumns.names.map(SQLText.name) + names(0..<count)
        let all = written + names(count..<table.columns.count)
        let types = arrayTypes(columns: count)
        let arrays = types.enumerated().map { "$\($0 + 1)::\($1.name)[]" }
        let rest = (count..<table.columns.count).map { defaults[$0] ?? "NULL" }
        let updates = written.dropFirst(RowColumns.keyCount).map { "\($0) = excluded.\($0)" }
        let insert = """
            INSERT INTO \(qualifiedName) (\(all.joined(separator: ", ")))
            SELECT \((["new.*"] + rest).joined(separator: ", "))
            FROM unnest(\(arrays.joined(separator: ", "))) AS new
            """
        if areNew { return insert }
        return insert + "\nON CONFLICT (sync_id, id) DO UPDATE SET \(updates.joined(separator: ", "))"
    }

    /// The types of the arrays of `write`.
    func arrayTypes(columns count: Int) -> [PostgresType] {
        RowColumns.all.map(\.type.postgresType) + table.columns.prefix(count).map(\.type.postgresType)
    }

    /// Selects rows by arrays of sync_id and id: the index of the key in them, then Weir's columns behind the key, then the first
    /// `count` values.
    ///
    /// `LATERAL` with `OFFSET 0` makes the planner look up each key in the index, whatever size it assumes for the table.
    ///
    /// - Parameter isBounded: whether a third parameter is the size of the rows to return, in bytes. They end with the row that
    ///   reaches it; another column, the last, is the size up to each row.
    func lookup(columns count: Int, isBounded: Bool) -> String {
        let size = isBounded ? ", \(size(columns: count)) AS weir_size" : ""
        let requested = """
            FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS requested (sync_id, id, number)
            CROSS JOIN LATERAL (SELECT *\(size) FROM \(qualifiedName) AS stored
                WHERE stored.sync_id = requested.sync_id AND stored.id = requested.id OFFSET 0) AS found
            """
        if !isBounded { return "SELECT requested.number, \(readColumns(count))\n\(requested)" }
        // `unnest` is in the order of its numbers, so nothing is sorted. The values themselves are read for the sum
        // only where they are compressed json.
        return """
            SELECT found.weir_number, \(readColumns(count)), found.weir_read
            FROM (SELECT requested.number AS weir_number, found.*,
                sum(found.weir_size) OVER (ORDER BY requested.number ROWS UNBOUNDED PRECEDING) AS weir_read
                \(requested)) AS found
            WHERE found.weir_read - found.weir_size < $3::bigint ORDER BY found.weir_number
            """
    }

    /// About the size of the first `count` values in bytes, as an `integer`.
    private func size(columns count: Int) -> String {
        let sizes = table.columns.prefix(count).map { column in
            let name = "stored.\(SQLText.name(column.name))"
            return switch column.type {
            case .text, .bytes: "coalesce(octet_length(\(name)), 0)"
            // `octet_length` takes no json, whose text is only made where the stored size says nothing.
            case .json:
                """
                coalesce(CASE WHEN pg_column_compression(\(name)) IS NULL THEN pg_column_size(\(name)) \
                ELSE octet_length(\(name)::text) END, 0)
                """
            case .integer, .real, .boolean, .decimal, .uuid, .timestamp, .date: "16"
            }
        }
        return sizes.isEmpty ? "0" : sizes.joined(separator: " + ")
    }

    /// Selects all rows of a partition by owner and timeStamp: owner, id, then the columns of `lookup`.
    func scan(columns count: Int, owners: TableDefinition, partition: Int) -> String {
        """
        SELECT found.sync_id, found.id, \(readColumns(count))
        FROM \(owners.qualifiedName) AS owner JOIN \(qualifiedName) AS found ON found.sync_id = owner.sync_id
        WHERE owner.partition = \(partition) ORDER BY found.sync_id, found.time_stamp
        """
    }

    var qualifiedName: String { "\(SQLText.name(schema)).\(SQLText.name(table.name))" }

    private func names(_ range: Range<Int>) -> [String] { range.map { SQLText.name(table.columns[$0].name) } }

    private func readColumns(_ count: Int) -> String {
        let system = RowColumns.names.dropFirst(RowColumns.keyCount).map(SQLText.name)
        return (system + names(0..<count)).map { "found.\($0)" }.joined(separator: ", ")
    }
}
