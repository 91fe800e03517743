import SyncModel

/// A schema version as ingest reads changes by it.
struct IngestSchema: Sendable {
    /// What each table is read by.
    struct TableForms: Sendable {
        /// The table's name for the batch's content.
        let name: [UInt8]
        /// How to bring each column's values to canonical form.
        let columns: [CanonicalForm]
        /// The columns' positions and names in the order of their names' bytes, which no version changes.
        let byName: [(position: Int, name: [UInt8])]
        /// Only rows of lastWriteWins tables show their `updatedAt`.
        let showsUpdatedAt: Bool
    }

    /// The version.
    let version: SchemaVersion
    /// Its tables.
    let schema: Schema
    /// For each table how it is read.
    let tables: [TableForms]

    init(_ entry: SchemaHistory.Entry, maximumValueBytes: Int) {
        version = entry.version
        schema = entry.schema
        tables = entry.schema.tables.map { table in
            TableForms(
                name: Array(table.name.utf8),
                columns: table.columns.map { CanonicalForm($0, maximumBytes: maximumValueBytes) },
                byName: table.columns.enumerated().map { ($0, Array($1.name.utf8)) }
                    .sorted { $0.name.lexicographicallyPrecedes($1.name) },
                showsUpdatedAt: table.policy == .lastWriteWins)
        }
    }
}
