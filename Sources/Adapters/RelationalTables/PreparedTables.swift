import RecordStore
import SyncModel
import Synchronization

/// A table of rows in the SQL of one database.
package protocol RowTableLayout: Sendable {
    /// The table with the columns of the newest prepared version.
    var table: Table { get }
}

/// The schema versions and tables that a store is prepared for.
package struct PreparedTables<Layout: RowTableLayout>: Sendable {
    package let schemas: SchemaHistory
    /// The tables of the newest version.
    package let layouts: [Layout]

    package init(_ schemas: SchemaHistory, _ layouts: [Layout]) {
        self.schemas = schemas
        self.layouts = layouts
    }

    /// How many columns each table has in a version, without the tables that a later version adds.
    package func columnCounts(ordinal: Int) throws(RecordStoreError) -> [Int] {
        // A partition that has not read a part yet has no rows.
        if ordinal == 0 { return [] }
        guard let entry = schemas[ordinal] else {
            throw RecordStoreError(
                .incompatibleTables,
                message: "schema version \(ordinal) is required, but the tables are prepared up to version "
                    + "\(schemas.entries.count)")
        }
        return entry.schema.tables.map(\.columns.count)
    }

    /// The layout for a row with a number of values.
    package func layout(of key: RowKey, columns: Int) throws(RecordStoreError) -> Layout {
        guard layouts.indices.contains(key.table) else {
            throw RecordStoreError(
                .refusedRow(key),
                message: "the row is of table number \(key.table), but \(layouts.count) tables are prepared")
        }
        let layout = layouts[key.table]
        guard columns <= layout.table.columns.count else {
            throw RecordStoreError(
                .refusedRow(key),
                message: "a row of \(layout.table.name) has \(columns) values, but "
                    + "\(layout.table.columns.count) columns are prepared")
        }
        return layout
    }
}

/// The tables of the newest successful `prepare`.
package final class CurrentTables<Layout: RowTableLayout>: Sendable {
    private let tables = Mutex<PreparedTables<Layout>?>(nil)

    package init() {}

    /// Keeps the newer of both: concurrent calls of `prepare` may return in any order.
    package func update(_ new: PreparedTables<Layout>) {
        tables.withLock { tables in
            if let tables, tables.schemas.entries.count > new.schemas.entries.count { return }
            tables = new
        }
    }

    package func get() throws(RecordStoreError) -> PreparedTables<Layout> {
        guard let tables = tables.withLock({ $0 }) else {
            throw RecordStoreError(.incompatibleTables, message: "the tables are used before they are prepared")
        }
        return tables
    }
}
