import Postgres
import RecordStore
import SyncModel

/// Says how much a partition has: counts small tables, and of large ones a sample of their pages.
///
/// The statistics of the server know tables alone, not how their rows fall into partitions, and nothing of a table that
/// was not analyzed yet.
struct PartitionCount {
    /// How many pages of a table are read at most, about: 8 MiB, in the order of the disk.
    ///
    /// A partition that has a quarter of them is then estimated to some percent.
    private static let pages = 1000

    private let connection: PostgresConnection
    private let tables: PreparedTables
    private let own: SystemTables
    private let partition: Int

    init(_ connection: PostgresConnection, _ tables: PreparedTables, schema: String, of partition: Int) {
        self.connection = connection
        self.tables = tables
        own = SystemTables(schema: schema)
        self.partition = partition
    }

    /// Asks for rows and outcomes.
    func size() throws -> PartitionSize {
        var size = PartitionSize(rows: 0, outcomes: 0)
        for layout in tables.layouts {
            let (rows, isExact) = try sum("1", of: layout.qualifiedName, owner: "sync_id")
            size.rows += rows
            size.isExact = size.isExact && isExact
        }
        // Each device has its newest outcomes, and counts all that it ever had.
        let kept = "least(found.outcomes, \(Outcome.keptPerDevice))"
        let (outcomes, isExact) = try sum(kept, of: own.devices.qualifiedName, owner: "owner")
        size.outcomes = outcomes
        size.isExact = size.isExact && isExact
        return size
    }

    /// Adds something up over the rows of a table whose owners are the partition's.
    private func sum(_ what: String, of table: String, owner: String) throws -> (sum: Int, isExact: Bool) {
        let found = try connection.queryOnce(
            "SELECT pg_relation_size(\(SQLText.literal(table))) / current_setting('block_size')::bigint")
        let share = min(1, Double(Self.pages) / Double(max(1, try found.bigint(0, 0))))
        // Always the same pages.
        let sample = share < 1 ? "TABLESAMPLE SYSTEM (\(share * 100)) REPEATABLE (1)" : ""
        let sum = try connection.queryOnce(
            """
            SELECT coalesce(sum(\(what)), 0)::bigint FROM \(table) AS found \(sample)
            JOIN \(own.owners.qualifiedName) AS owner ON owner.sync_id = found.\(owner)
            WHERE owner.partition = \(partition)
            """)
        return (Int((Double(try sum.bigint(0, 0)) / share).rounded()), share == 1)
    }
}
