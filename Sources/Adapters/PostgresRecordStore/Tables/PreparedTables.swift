import CanonicalValues
import RecordStore
import SyncModel

/// What calls need to know of the schema once the tables are prepared.
struct PreparedTables: Sendable {
    /// The versions known.
    let schemas: SchemaHistory
    /// The tables of the newest version prepared.
    let layouts: [TableLayout]
    /// The statements of the store's own tables.
    let statements: SystemStatements

    init(_ schemas: SchemaHistory, _ layouts: [TableLayout], _ statements: SystemStatements) {
        self.schemas = schemas
        self.layouts = layouts
        self.statements = statements
    }

    /// How many columns each table has in a version; tables that come later are missing.
    func columnCounts(ordinal: Int) throws(RecordStoreError) -> [Int] {
        // A partition that has seen no message has no rows.
        if ordinal == 0 { return [] }
        guard let entry = schemas[ordinal] else {
            throw RecordStoreError(
                .incompatibleTables,
                message: "schema version \(ordinal) is asked for, and the tables were prepared up to version "
                    + "\(schemas.entries.count)")
        }
        return entry.schema.tables.map(\.columns.count)
    }

    /// The table that a row is of, with as many columns as it has values.
    func layout(of key: RowKey, columns: Int) throws(RecordStoreError) -> TableLayout {
        guard layouts.indices.contains(key.table) else {
            throw RecordStoreError(
                .refusedRow(key),
                message: "the row is of table \(key.table), and \(layouts.count) are prepared")
        }
        let layout = layouts[key.table]
        guard columns <= layout.table.columns.count else {
            throw RecordStoreError(
                .refusedRow(key),
                message: "a row of \(layout.table.name) has \(columns) values, and "
                    + "\(layout.table.columns.count) columns are prepared")
        }
        return layout
    }
}
