import RecordStore
import RelationalTables
import SQLite
import SyncModel

/// Counts the rows of a partition, by the index of their keys, and its outcomes.
struct PartitionCount {
    let connection: Connection
    let tables: PreparedTables<TableLayout>
    let partition: Int

    func size() throws -> PartitionSize {
        var size = PartitionSize(rows: 0, outcomes: 0)
        for layout in tables.layouts {
            try Task.checkCancellation()
            size.rows += try sum("1", of: layout.name, owner: "sync_id")
        }
        // The column counts all outcomes that the device ever had.
        size.outcomes = try sum("min(found.outcomes, \(Outcome.keptPerDevice))", of: "weir_devices", owner: "owner")
        return size
    }

    /// Sums an expression over the rows of the partition's owners.
    ///
    /// `CROSS JOIN` makes SQLite loop over owners first.
    private func sum(_ expression: String, of table: String, owner: String) throws -> Int {
        var statement = try connection.prepare(
            """
            SELECT coalesce(sum(\(expression)), 0) FROM weir_owners AS owner
            CROSS JOIN \(table) AS found ON found.\(owner) = owner.sync_id WHERE owner.partition = ?1
            """)
        try statement.bind(integer: Int64(partition), at: 1)
        guard try statement.step() else { return 0 }
        return Int(try statement.integer(at: 0))
    }
}
