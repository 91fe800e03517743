import RecordStore
import SyncModel

/// What calls need to know of the schema once the tables are prepared.
struct PreparedTables: Sendable {
    /// The versions known.
    let schemas: SchemaHistory
    /// The tables of the newest version.
    let layouts: [TableLayout]

    init(_ schemas: SchemaHistory) {
        self.schemas = schemas
        layouts = schemas.newest?.schema.tables.map(TableLayout.init) ?? []
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
}
