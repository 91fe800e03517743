import RecordStore
import RelationalTables
import SQLite
import SyncModel

/// Writes the steps of calls inside one transaction, and keeps their statements until its end.
///
/// A `RecordStoreError` fails one call, any other error the transaction.
final class StepWriter {
    private struct Shape: Hashable {
        let table: Int
        let columns: Int
    }

    private let connection: Connection
    private let tables: PreparedTables<TableLayout>
    private var upserts: [Shape: RowUpsert] = [:]

    init(_ connection: Connection, _ tables: PreparedTables<TableLayout>) {
        self.connection = connection
        self.tables = tables
    }

    func write(_ steps: [StoreStep]) throws {
        for step in steps {
            try PartitionsTable.update(step, connection)
            for owner in step.owners { try PartitionsTable.insertOwner(owner, in: step.partition, connection) }
            for row in step.rows { try upsert(row) }
            for outcome in step.outcomes { try DevicesTable.write(outcome, connection) }
            try AppliedChangesTable.write(step.applied, connection)
            for (owner, usage) in step.usage { try PartitionsTable.write(usage, of: owner, connection) }
        }
    }

    private func upsert(_ row: OrderedRow) throws {
        let shape = Shape(table: row.key.table, columns: row.values.count)
        if let known = upserts[shape] { return try known.write(row) }
        let layout = try tables.layout(of: row.key, columns: shape.columns)
        let upsert = RowUpsert(
            try connection.statement(caching: layout.upsert(columns: shape.columns)), layout.table)
        upserts[shape] = upsert
        try upsert.write(row)
    }
}
