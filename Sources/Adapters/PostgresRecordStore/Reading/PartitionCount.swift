import Postgres
import RecordStore
import RelationalTables
import SyncModel

/// Estimates the size of a partition: counts small tables, and a sample of the pages of large ones.
///
/// The server's statistics cover tables, not the rows of each partition, and nothing before the first ANALYZE.
struct PartitionCount {
    /// About how many pages of a table are read: 8 MiB.
    ///
    /// The estimate for a partition with a quarter of the rows is then accurate to some percent.
    private static let pages = 1000

    let connection: PostgresConnection
    let tables: PreparedTables<TableLayout>
    let system: SystemTables
    let partition: Int

    func size() throws -> PartitionSize {
        var size = PartitionSize(rows: 0, outcomes: 0)
        for layout in tables.layouts {
            let (rows, isExact) = try sum("1", of: layout.qualifiedName, owner: "sync_id")
            size.rows += rows
            size.isExact = size.isExact && isExact
        }
        // The column counts all outcomes that the device ever had.
        let kept = "least(found.outcomes, \(Outcome.keptPerDevice))"
        let (outcomes, isExact) = try sum(kept, of: system.devices.qualifiedName, owner: "owner")
        size.outcomes = outcomes
        size.isExact = size.isExact && isExact
        return size
    }

    /// Sums an expression over the rows of the partition's owners.
    private func sum(_ expression: String, of table: String, owner: String) throws -> (sum: Int, isExact: Bool) {
        let found = try connection.queryOnce(
            "SELECT pg_relation_size(\(SQLText.literal(table))) / current_setting('block_size')::bigint")
        let share = min(1, Double(Self.pages) / Double(max(1, try found.bigint(0, 0))))
        // REPEATABLE always selects the same pages.
        let sample = share < 1 ? "TABLESAMPLE SYSTEM (\(share * 100)) REPEATABLE (1)" : ""
        let sum = try connection.queryOnce(
            """
            SELECT coalesce(sum(\(expression)), 0)::bigint FROM \(table) AS found \(sample)
            JOIN \(system.owners.qualifiedName) AS owner ON owner.sync_id = found.\(owner)
            WHERE owner.partition = \(partition)
            """)
        return (Int((Double(try sum.bigint(0, 0)) / share).rounded()), share == 1)
    }
}
