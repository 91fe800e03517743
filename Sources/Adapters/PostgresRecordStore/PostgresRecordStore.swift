import Observability
import Postgres
import RecordStore
import SyncModel
import Synchronization

/// The tables in Postgres: the store of workers on several machines.
///
/// Each table of the schema is a table of its name in Postgres's own types, with Weir's columns before its own, made to be
/// queried while Weir runs. A failure of the server may take the newest commits back, position and rows together;
/// ordering makes them again from the log.
///
/// Partition p lives in database p mod n of the configured ones. Calls of `commit` that come while the writing sessions are
/// busy share the next transaction. A commit whose answer is lost is found out by the partition's position; one that
/// meets a stalled predecessor's lock ends that one's session.
package final class PostgresRecordStore: RecordStore {
    let shards: [Shard]
    private let schema: String
    private let migratesAtStart: Bool
    private let isReadOnly: Bool
    private let prepared = Mutex<PreparedTables?>(nil)

    /// Makes the store; connects to nothing yet.
    ///
    /// - Throws: `RecordStoreError` where threads cannot be started.
    package static func open(
        _ configuration: PostgresRecordStoreConfiguration, logger: Logger = .disabled
    ) async throws(RecordStoreError) -> PostgresRecordStore {
        var shards: [Shard] = []
        do {
            for number in configuration.shards.indices {
                shards.append(try await Shard.start(configuration, number: number, logger: logger))
            }
        } catch {
            for shard in shards { await shard.close() }
            throw RecordStoreError(.unavailable, message: "\(error)")
        }
        return PostgresRecordStore(shards, configuration)
    }

    private init(_ shards: [Shard], _ configuration: PostgresRecordStoreConfiguration) {
        self.shards = shards
        schema = configuration.schema
        migratesAtStart = configuration.migratesAtStart
        isReadOnly = configuration.isReadOnly
    }

    // MARK: Tables

    /// Makes or extends the tables, in each database all or nothing; see ``RecordStore/RecordStore/prepare(_:epoch:)``.
    ///
    /// Where the configuration says that a start does not migrate, tables that lack something are refused.
    package func prepare(_ schemas: SchemaHistory, epoch: String) async throws(RecordStoreError) {
        let plans = try await migrationPlans(schemas, epoch: epoch)
        if let lacking = plans.first(where: { !$0.statements.isEmpty }) {
            guard migratesAtStart, !isReadOnly else {
                throw RecordStoreError(
                    .incompatibleTables,
                    message: "\(lacking.database): the tables are not those of schema version "
                        + "\(schemas.entries.count) yet; run `weir migrate`, which shows what it does with --dry-run")
            }
            try await apply(schemas, epoch: epoch)
        }
        let settings = shards[0].settings
        var layouts: [TableLayout] = []
        for table in schemas.newest?.schema.tables ?? [] { layouts.append(try settings.layout(table)) }
        let tables = PreparedTables(schemas, layouts, SystemStatements(SystemTables(schema: schema)))
        prepared.withLock { known in
            // Calls may overtake each other on their way back.
            if known.map({ $0.schemas.entries.count <= schemas.entries.count }) ?? true { known = tables }
        }
    }

    /// What ``migrate(_:epoch:)`` would do to each database; nothing is changed.
    ///
    /// - Throws: `RecordStoreError`, of the code `incompatibleTables` where a database does not fit.
    package func migrationPlans(
        _ schemas: SchemaHistory, epoch: String
    ) async throws(RecordStoreError) -> [MigrationPlan] {
        var plans: [MigrationPlan] = []
        for shard in shards {
            plans.append(
                try await shard.migrate { connection in
                    try Migration(connection, schemas, epoch: epoch, shard.settings).plan()
                })
        }
        return plans
    }

    /// Makes and extends the tables of each database for all versions known; rows keep what they hold.
    ///
    /// All databases are looked at before the first is changed.
    ///
    /// - Returns: what was done.
    /// - Throws: `RecordStoreError`, of the code `incompatibleTables` where a database does not fit.
    @discardableResult
    package func migrate(
        _ schemas: SchemaHistory, epoch: String
    ) async throws(RecordStoreError) -> [MigrationPlan] {
        _ = try await migrationPlans(schemas, epoch: epoch)
        return try await apply(schemas, epoch: epoch)
    }

    @discardableResult
    private func apply(_ schemas: SchemaHistory, epoch: String) async throws(RecordStoreError) -> [MigrationPlan] {
        var plans: [MigrationPlan] = []
        for shard in shards {
            plans.append(
                try await shard.migrate { connection in
                    try Migration(connection, schemas, epoch: epoch, shard.settings).run()
                })
        }
        return plans
    }

    // MARK: Reading

    /// Where a partition stands; `nil` before its first step.
    package func position(of partition: Int) async throws(RecordStoreError) -> StoredPosition? {
        let statements = SystemStatements(SystemTables(schema: schema))
        let shard = shard(of: partition)
        shard.forgetOwners()
        return try await shard.read { connection in
            try PositionRecord.read(partition, connection, statements)
        }
    }

    /// The rows with these keys that exist, table by table.
    package func rows(
        _ keys: [RowKey], in partition: Int, schemaOrdinal: Int
    ) async throws(RecordStoreError) -> [OrderedRow] {
        let tables = try preparedTables()
        return try await shard(of: partition).read { connection in
            try RowLookUp(connection, tables, schemaOrdinal: schemaOrdinal).rows(keys)
        }
    }

    /// The progress of devices, one for each request.
    package func progress(
        _ requests: [ProgressRequest], in partition: Int
    ) async throws(RecordStoreError) -> [DeviceProgress] {
        let tables = try preparedTables()
        return try await shard(of: partition).read { connection in
            try ProgressLookUp.read(requests, connection, tables.statements)
        }
    }

    /// How much a partition has; of tables above 8 MB an estimate from a sample.
    ///
    /// Waits for snapshots of the same database.
    package func size(of partition: Int) async throws(RecordStoreError) -> PartitionSize {
        let tables = try preparedTables()
        return try await shard(of: partition).beforeSnapshot { connection in
            try PartitionCount(connection, tables, schema: schema, of: partition).size()
        }
    }

    /// Reads a partition whole; one snapshot of a database at a time, others wait for it.
    ///
    /// - Throws: `RecordStoreError`, `CancellationError`, and what the body throws.
    package func snapshot(
        of partition: Int, schemaOrdinal: Int, _ body: @escaping @Sendable (SnapshotChunk) throws -> Void
    ) async throws {
        let tables = try preparedTables()
        try await shard(of: partition).snapshot(of: partition, tables, schemaOrdinal: schemaOrdinal, body)
    }

    // MARK: Writing

    /// Writes steps, all or none; together with what other calls brought meanwhile, each of which stands for itself.
    ///
    /// A cancelled caller gets its answer all the same: what was asked to be written is written. Partitions of one call
    /// share a database: a transaction has only one.
    package func commit(_ steps: [StoreStep]) async throws(RecordStoreError) {
        let tables = try preparedTables()
        guard let first = steps.first else { return }
        let number = first.partition % shards.count
        guard steps.allSatisfy({ $0.partition % shards.count == number }) else {
            throw RecordStoreError(
                .unavailable, message: "partitions of several databases cannot be written in one transaction")
        }
        try await shards[number].commit(steps, tables)
    }

    /// Ends the store after the calls under way; a snapshot ends first.
    package func close() async {
        for shard in shards { await shard.close() }
    }

    func shard(of partition: Int) -> Shard { shards[partition % shards.count] }

    func preparedTables() throws(RecordStoreError) -> PreparedTables {
        guard let tables = prepared.withLock({ $0 }) else {
            throw RecordStoreError(.incompatibleTables, message: "the tables are used before they were prepared")
        }
        return tables
    }
}
