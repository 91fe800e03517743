import Postgres

/// The settings of tables in Postgres.
package struct PostgresRecordStoreConfiguration: Sendable {
    /// The databases, as connection strings of libpq; partition p lives in number p mod n.
    ///
    /// Their order and number are for ever: each database notes its place and refuses another.
    package var shards: [ConnectionParameters]
    /// The schema of Postgres that holds the tables; made where it is missing.
    package var schema: String
    /// Sessions with each database that read and write, each on a thread of its own; one more reads snapshots.
    package var connections: Int
    /// The role that may read all tables; `nil`: nobody but the owner.
    package var readersRole: String?
    /// Whether columns that refer to other tables get an index each, for operators' queries; every write pays for them.
    package var indexesReferences: Bool
    /// Whether ``PostgresRecordStore/prepare(_:epoch:)`` makes and extends tables, or refuses where something is missing.
    package var migratesAtStart: Bool
    /// How long a commit waits for another worker that holds its partition before it ends that worker's session.
    package var stalledAfter: Duration
    /// How long a transaction may stand open without a statement before Postgres ends its session; below the time after
    /// which the log gives a silent worker's partitions to another.
    package var idleTransactionTimeout: Duration
    /// How long it may take to reach a server and log in.
    package var connectTimeout: Duration
    /// Whether the store is only read, which takes no other right than to read the tables: what would write fails.
    ///
    /// ``PostgresRecordStore/prepare(_:epoch:)`` then looks only for what reading needs. For commands, no key sets it.
    package var isReadOnly = false

    /// Makes settings.
    package init(
        shards: [ConnectionParameters], schema: String = "weir", connections: Int = 8, readersRole: String? = nil,
        indexesReferences: Bool = false, migratesAtStart: Bool = true, stalledAfter: Duration = .seconds(3),
        idleTransactionTimeout: Duration = .seconds(10), connectTimeout: Duration = .seconds(10)
    ) {
        precondition(!shards.isEmpty, "there is at least one database")
        self.shards = shards
        self.schema = schema
        self.connections = connections
        self.readersRole = readersRole
        self.indexesReferences = indexesReferences
        self.migratesAtStart = migratesAtStart
        self.stalledAfter = stalledAfter
        self.idleTransactionTimeout = idleTransactionTimeout
        self.connectTimeout = connectTimeout
    }
}
