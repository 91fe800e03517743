import Postgres
import RecordStore

/// Looks for indexes that others added and that could refuse a row: unique ones, such with expressions or conditions,
/// which may fail, and trees over values too large for their pages.
struct IndexCheck {
    private let connection: PostgresConnection
    private let schema: String
    private let place: String

    init(_ connection: PostgresConnection, schema: String, place: String) {
        self.connection = connection
        self.schema = schema
        self.place = place
    }

    /// The most bytes that an entry of a tree may have, by Postgres's documentation a third of a page.
    private static let maximumEntry = 2600
    func run(_ shape: TableShape) throws {
        var parameters = PostgresParameters()
        parameters.append(shape.qualifiedName)
        let rows = try connection.query(
            """
            SELECT class.relname::text, indisunique OR indisexclusion,
                indexprs IS NOT NULL OR indpred IS NOT NULL, amname::text,
                NOT EXISTS (SELECT 1 FROM unnest(indclass) AS operators (class)
                    JOIN pg_opclass ON pg_opclass.oid = operators.class
                    WHERE opcnamespace <> 'pg_catalog'::regnamespace),
                ARRAY (SELECT attname::text FROM unnest(indkey) AS part (number)
                    JOIN pg_attribute ON attrelid = indrelid AND attnum = part.number)
            FROM pg_index JOIN pg_class AS class ON class.oid = indexrelid JOIN pg_am ON pg_am.oid = class.relam
            WHERE indrelid = to_regclass($1::text) AND NOT indisprimary
            """, parameters)
        for row in 0..<rows.count {
            let name = try rows.text(row, 0)
            if try rows.boolean(row, 1) {
                throw refusal(
                    shape.name, "has the unique index \(name), which could refuse a row; drop it, or make it not unique"
                )
            }
            if try rows.boolean(row, 2) {
                throw refusal(
                    shape.name,
                    "has the index \(name) with an expression or condition, which could refuse a row; drop it")
            }
            let method = try rows.text(row, 3)
            guard try rows.boolean(row, 4), method == "hash" || method == "btree" else {
                throw refusal(
                    shape.name, "has the index \(name) of a kind that could refuse a row; use btree or hash instead")
            }
            if method == "btree", try size(rows, row, shape) > Self.maximumEntry {
                throw refusal(
                    shape.name,
                    "has the index \(name) over values that may be too large for it; drop it, or use hash instead")
            }
        }
    }

    /// How large an entry of the index may become.
    private func size(_ rows: borrowing PostgresResult, _ row: Int, _ shape: TableShape) throws -> Int {
        var size = 0
        for name in try rows.texts(row, 5) {
            guard let column = shape.columns.first(where: { $0.name.utf8.elementsEqual(name.utf8) }) else {
                // Of a column that others added, which Weir leaves NULL.
                size += 1
                continue
            }
            switch column.type {
            case "text", "bytea", "json":
                // With its length before it.
                guard let maximum = column.maximumBytes, maximum < Self.maximumEntry else { return .max }
                size += maximum + 4
            case "uuid": size += 16
            case let type where type.hasPrefix("numeric"): size += 32
            default: size += 8
            }
        }
        return size
    }

    private func refusal(_ table: String, _ message: String) -> RecordStoreError {
        RecordStoreError(.incompatibleTables, message: "\(place): table \(schema).\(table) \(message)")
    }
}
