import RecordStore
import SQLite
import SyncModel

/// Writes the steps of calls inside one transaction, and keeps their statements until its end.
///
/// What it throws as `RecordStoreError` concerns the call alone, anything else the transaction.
final class StepWriter {
    private let connection: Connection
    private let tables: PreparedTables
    /// The upserts compiled so far, by table and number of columns.
    private var upserts: [RowUpsert.Shape: RowUpsert.Box] = [:]

    init(_ connection: Connection, _ tables: PreparedTables) {
        self.connection = connection
        self.tables = tables
    }

    /// Writes all steps of one call.
    func write(_ steps: [StoreStep]) throws {
        for step in steps {
            try PositionRecord.move(step, connection)
            var owners = Set<SyncID>()
            for row in step.rows where owners.insert(row.key.owner).inserted {
                try OwnerRecord.settle(row.key.owner, in: step.partition, connection)
            }
            for outcome in step.outcomes where owners.insert(outcome.key.owner).inserted {
                try OwnerRecord.settle(outcome.key.owner, in: step.partition, connection)
            }
            for row in step.rows { try upsert(row) }
            for outcome in step.outcomes { try DeviceRecord.write(outcome, connection) }
        }
    }

    private func upsert(_ row: OrderedRow) throws {
        let shape = RowUpsert.Shape(table: row.key.table, columns: row.values.count)
        if let known = upserts[shape] { return try known.upsert.write(row) }
        guard tables.layouts.indices.contains(shape.table) else {
            throw RecordStoreError(
                .refusedRow(row.key),
                message: "the row is of table \(shape.table), and \(tables.layouts.count) are prepared")
        }
        let layout = tables.layouts[shape.table]
        guard shape.columns <= layout.table.columns.count else {
            throw RecordStoreError(
                .refusedRow(row.key),
                message: "a row of \(layout.table.name) has \(shape.columns) values, and "
                    + "\(layout.table.columns.count) columns are prepared")
        }
        let statement = try connection.prepare(layout.upsert(columns: shape.columns))
        let box = RowUpsert.Box(RowUpsert(statement, layout.table))
        upserts[shape] = box
        try box.upsert.write(row)
    }
}
