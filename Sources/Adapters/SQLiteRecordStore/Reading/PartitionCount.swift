import RecordStore
import SQLite
import SyncModel

/// Counts what a partition has: rows by the index of their keys, through which a snapshot finds them, too.
struct PartitionCount {
    private let connection: Connection
    private let tables: PreparedTables
    private let partition: Int

    init(_ connection: Connection, _ tables: PreparedTables, of partition: Int) {
        self.connection = connection
        self.tables = tables
        self.partition = partition
    }

    /// Counts rows and outcomes.
    func size() throws -> PartitionSize {
        var size = PartitionSize(rows: 0, outcomes: 0)
        for layout in tables.layouts {
            try Task.checkCancellation()
            size.rows += try sum("1", of: layout.name, owner: "sync_id")
        }
        // Each device has its newest outcomes, and counts all that it ever had.
        size.outcomes = try sum("min(found.outcomes, \(Outcome.keptPerDevice))", of: "weir_devices", owner: "owner")
        return size
    }

    /// Adds something up over the rows of a table whose owners are the partition's.
    ///
    /// `CROSS JOIN` has SQLite go from owners to rows.
    private func sum(_ what: String, of table: String, owner: String) throws -> Int {
        var statement = try connection.prepare(
            """
            SELECT coalesce(sum(\(what)), 0) FROM weir_owners AS owner
            CROSS JOIN \(table) AS found ON found.\(owner) = owner.sync_id WHERE owner.partition = ?1
            """)
        try statement.bind(integer: Int64(partition), at: 1)
        guard try statement.step() else { return 0 }
        return Int(try statement.integer(at: 0))
    }
}
