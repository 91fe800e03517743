import CanonicalValues
import Postgres
import SyncModel

/// The SQL of one table of rows.
struct TableLayout: Sendable {
    /// The table with the columns of the newest version prepared.
    let table: Table
    private let schema: String
    /// The literals of the columns' defaults.
    private let defaults: [String?]

    /// - Throws: `CanonicalValueError` where a default is no value of its column.
    init(_ table: Table, schema: String) throws(CanonicalValueError) {
        self.table = table
        self.schema = schema
        var defaults: [String?] = []
        for column in table.columns { defaults.append(try DefaultLiteral.sql(of: column)) }
        self.defaults = defaults
    }

    /// The table with its first `count` columns.
    func shape(columns count: Int) -> TableShape {
        TableShape(
            schema: schema, name: table.name, columns: RowColumns.shapes + (0..<count).map(shape),
            primaryKey: ["sync_id", "id"],
            comment: "Rows of \(table.name) that devices sync; written by Weir alone", fillFactor: 90)
    }

    /// A column of the schema.
    func shape(ofColumn index: Int) -> TableShape.Column {
        let column = table.columns[index]
        return TableShape.Column(
            column.name, column.type.postgresName, isNullable: column.isNullable, defaultValue: defaults[index],
            comment: column.references.map { "Id of a row of \($0)" },
            // A character has at most four bytes.
            maximumBytes: column.maximumLength.map { column.type == .text ? $0 * 4 : $0 })
    }

    /// Writes many rows with their first `count` values, each column an array.
    ///
    /// - Parameter areNew: whether none of them exists, which saves Postgres a look for each; of one that does otherwise, the
    ///   columns behind the values stay.
    func write(columns count: Int, areNew: Bool) -> String {
        let written = RowColumns.shapes.map { SQLText.name($0.name) } + names(0..<count)
        let all = written + names(count..<table.columns.count)
        let types = RowColumns.types + table.columns.prefix(count).map(\.type.postgresType)
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

    /// Looks rows up by arrays of sync_id and id: the place of the key in them, then Weir's columns behind the key, then
    /// the first `count` values.
    ///
    /// Each key goes to the index by itself, whatever the planner thinks of the table's size (`LATERAL`, `OFFSET 0`).
    func lookUp(columns count: Int) -> String {
        """
        SELECT asked.place, \(readColumns(count))
        FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS asked (sync_id, id, place)
        CROSS JOIN LATERAL (SELECT * FROM \(qualifiedName) AS stored
            WHERE stored.sync_id = asked.sync_id AND stored.id = asked.id OFFSET 0) AS found
        """
    }

    /// All rows of a partition by owner and timeStamp: owner and id before the columns of `lookUp`.
    func scan(columns count: Int, owners: TableShape, partition: Int) -> String {
        """
        SELECT found.sync_id, found.id, \(readColumns(count))
        FROM \(owners.qualifiedName) AS owner JOIN \(qualifiedName) AS found ON found.sync_id = owner.sync_id
        WHERE owner.partition = \(partition) ORDER BY found.sync_id, found.time_stamp
        """
    }

    /// The table in SQL.
    var qualifiedName: String { "\(SQLText.name(schema)).\(SQLText.name(table.name))" }

    private func names(_ range: Range<Int>) -> [String] { range.map { SQLText.name(table.columns[$0].name) } }

    private func readColumns(_ count: Int) -> String {
        let own = RowColumns.shapes.dropFirst(RowColumns.keyCount).map { SQLText.name($0.name) }
        return (own + names(0..<count)).map { "found.\($0)" }.joined(separator: ", ")
    }
}
