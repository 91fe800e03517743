import Postgres
import RecordStore

/// Tells sessions that read tables for long that a migration waits for those tables: an advisory lock, which ends with the
/// migration's transaction.
///
/// A reader's transaction keeps the migration from its locks, and everybody queues behind an exclusive lock that waits.
struct MigrationNotice {
    private let lockSpace: Int32
    /// The second half of the advisory lock's key; partitions have the numbers from 0, the migration itself has -1.
    private static let key: Int32 = -2

    init(_ settings: ShardSettings) { lockSpace = settings.lockSpace }

    /// In the migration's transaction.
    func announce(_ connection: PostgresConnection) throws {
        try connection.execute("SELECT pg_catalog.pg_advisory_xact_lock(\(lockSpace), \(Self.key))")
    }

    /// Called by a reader before it touches tables, and again while it reads.
    ///
    /// - Throws: `RecordStoreError` of the code `givesWay`, after which the reader ends its transaction.
    func check(_ connection: PostgresConnection) throws {
        let rows = try connection.query(
            """
            SELECT 1 FROM pg_catalog.pg_locks
            WHERE locktype = 'advisory' AND granted AND objsubid = 2 AND classid = \(UInt32(bitPattern: lockSpace))
                AND objid = \(UInt32(bitPattern: Self.key))
                AND database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
            """)
        guard rows.count > 0 else { return }
        throw RecordStoreError(
            .givesWay,
            message: "\(connection.database): a migration waits for the tables; they are read again after it",
            isRetriable: true)
    }
}
