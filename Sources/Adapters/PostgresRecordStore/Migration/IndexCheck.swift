import Postgres
import RecordStore
import RelationalTables

/// Rejects foreign indexes that could reject a row: unique ones, ones with expressions or conditions, which may fail, and
/// B-trees over values too large for their pages.
struct IndexCheck {
    let connection: PostgresConnection
    let schema: String
    let database: String

    /// In bytes; Postgres limits a B-tree entry to about a third of a page.
    private static let maximumEntry = 2600

    func run(_ definition: TableDefinition) throws {
        var parameters = PostgresParameters()
        parameters.append(definition.qualifiedName)
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
                    definition.name,
                    "has the unique index \(name), which could reject a row; drop it, or make it non-unique"
                )
            }
            if try rows.boolean(row, 2) {
                throw refusal(
                    definition.name,
                    "has the index \(name) with an expression or condition, which could reject a row; drop it")
            }
            let method = try rows.text(row, 3)
            guard try rows.boolean(row, 4), method == "hash" || method == "btree" else {
                throw refusal(
                    definition.name,
                    "has the index \(name) of a kind that could reject a row; use btree or hash instead")
            }
            if method == "btree", try size(rows, row, definition) > Self.maximumEntry {
                throw refusal(
                    definition.name,
                    "has the index \(name) over values that may be too large for it; drop it, or use hash instead")
            }
        }
    }

    /// The maximum size of an entry of the index.
    private func size(_ rows: borrowing PostgresResult, _ row: Int, _ definition: TableDefinition) throws -> Int {
        var size = 0
        for name in try rows.texts(row, 5) {
            guard let column = definition.columns.first(where: { $0.name.utf8.elementsEqual(name.utf8) }) else {
                // A foreign column, which Weir leaves NULL.
                size += 1
                continue
            }
            switch column.type {
            case "text", "bytea", "json":
                // With a length prefix.
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
        .incompatible("table \(schema).\(table) \(message)", database: database)
    }
}
