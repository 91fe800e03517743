import Observability
import Postgres
import RecordStore
import RelationalTables
import SyncModel
import Synchronization

/// The tables in Postgres: the store of workers on several machines.
///
/// Each table of the schema is a table of the same name with Postgres's types and Weir's columns before its own, and can be
/// queried while Weir runs. A server failure may lose the newest commits, position and rows together; ordering repeats them
/// from the log.
///
/// Partition p is in database p mod n of the configured ones. Calls of `commit` that arrive while the writing sessions are
/// busy share the next transaction. If the response to a commit is lost, the partition's position shows whether it
/// succeeded; a commit that is blocked by the lock of a stalled predecessor terminates that session.
package final class PostgresRecordStore: RecordStore {
    let shards: [Shard]
    let tables: CurrentTables<TableLayout>
    private let migratesAtStart: Bool
    private let migrationWait: Duration
    private let isReadOnly: Bool

    private struct Preparations {
        /// What the tables are to be prepared for; `nil` before the first call of ``prepareOnUse(_:epoch:)``.
        var wanted: (schemas: SchemaHistory, epoch: String)?
        /// By database, for how many versions its tables are prepared; -1 before the first.
        var counts: [Int]
    }

    private let preparations: Mutex<Preparations>

    /// Does not connect yet.
    ///
    /// - Throws: `RecordStoreError` if threads cannot be started.
    package static func open(
        _ configuration: PostgresRecordStoreConfiguration, logger: Logger = .disabled
    ) async throws(RecordStoreError) -> PostgresRecordStore {
        var shards: [Shard] = []
        let tables = CurrentTables<TableLayout>()
        do {
            for number in configuration.shards.indices {
                shards.append(try await Shard.start(configuration, number: number, tables, logger: logger))
            }
        } catch {
            for shard in shards { await shard.close() }
            throw RecordStoreError(.unavailable, message: "\(error)")
        }
        return PostgresRecordStore(shards, tables, configuration)
    }

    private init(
        _ shards: [Shard], _ tables: CurrentTables<TableLayout>, _ configuration: PostgresRecordStoreConfiguration
    ) {
        self.shards = shards
        self.tables = tables
        preparations = Mutex(Preparations(counts: Array(repeating: -1, count: shards.count)))
        migratesAtStart = configuration.migratesAtStart
        migrationWait = configuration.migrationWait
        isReadOnly = configuration.isReadOnly
    }

    // MARK: Tables

    /// Creates or extends the tables, in each database all or nothing; see ``RecordStore/RecordStore/prepare(_:epoch:)``.
    ///
    /// Of several databases, one that is away delays no partition of another: its tables are prepared by the first call that reaches it.
    /// If the configuration does not allow a start to migrate, it throws when something is missing.
    package func prepare(_ schemas: SchemaHistory, epoch: String) async throws(RecordStoreError) {
        var failure: RecordStoreError?
        var count = 0
        for number in shards.indices {
            do throws(RecordStoreError) {
                try await prepare(number, schemas, epoch: epoch)
                count += 1
            } catch {
                guard error.isRetriable else { throw error }
                failure = failure ?? error
            }
        }
        if count == 0, let failure { throw failure }
        try prepareOnUse(schemas, epoch: epoch)
    }

    /// Lets the first call that needs a database prepare its tables; does not connect.
    package func prepareOnUse(_ schemas: SchemaHistory, epoch: String) throws(RecordStoreError) {
        let settings = shards[0].settings
        var layouts: [TableLayout] = []
        for table in schemas.newest?.schema.tables ?? [] { layouts.append(try settings.layout(table)) }
        preparations.withLock { preparations in
            if let wanted = preparations.wanted, wanted.schemas.entries.count > schemas.entries.count { return }
            preparations.wanted = (schemas, epoch)
        }
        tables.update(PreparedTables(schemas, layouts))
    }

    /// Creates or extends the tables of one database.
    private func prepare(_ number: Int, _ schemas: SchemaHistory, epoch: String) async throws(RecordStoreError) {
        let shard = shards[number]
        let plan = try await plan(of: shard, schemas, epoch: epoch)
        if !plan.statements.isEmpty {
            guard migratesAtStart, !isReadOnly else {
                throw RecordStoreError.incompatible(
                    "the tables are not migrated to schema version \(schemas.entries.count); run `weir migrate`, which shows "
                        + "its statements with --dry-run", database: plan.database)
            }
            let run = MigrationRun(schemas: schemas, epoch: epoch, wait: migrationWait) { true }
            _ = try await run.run([shard])
        }
        preparations.withLock { $0.counts[number] = max($0.counts[number], schemas.entries.count) }
    }

    /// The database of a partition, after its tables were prepared for what is wanted by now.
    private func prepared(_ partition: Int) async throws(RecordStoreError) -> Shard {
        let number = partition % shards.count
        let (wanted, count) = preparations.withLock { ($0.wanted, $0.counts[number]) }
        if let wanted, count < wanted.schemas.entries.count {
            try await prepare(number, wanted.schemas, epoch: wanted.epoch)
        }
        return shards[number]
    }

    /// What ``migrate(_:epoch:)`` would do to each database; nothing is changed.
    ///
    /// - Throws: `RecordStoreError`, of the code `incompatibleTables` if a database does not fit.
    package func migrationPlans(
        _ schemas: SchemaHistory, epoch: String
    ) async throws(RecordStoreError) -> [MigrationPlan] {
        var plans: [MigrationPlan] = []
        for shard in shards { plans.append(try await plan(of: shard, schemas, epoch: epoch)) }
        return plans
    }

    private func plan(
        of shard: Shard, _ schemas: SchemaHistory, epoch: String
    ) async throws(RecordStoreError) -> MigrationPlan {
        try await shard.migrate { try Migration($0, schemas, epoch: epoch, shard.settings).plan() }
    }

    /// Creates and extends the tables of each database for all known versions; rows keep their values.
    ///
    /// All databases are changed, in a transaction of each, before `publish` makes the newest version known to other processes;
    /// then the transactions are committed. Tables that are in use are awaited with short attempts, between which nothing is
    /// locked.
    ///
    /// - Parameter publish: returns false where the version was not published: then nothing is changed. It must end within half
    ///   a minute.
    /// - Returns: what was done; `nil` if the version was not published.
    /// - Throws: `RecordStoreError`, of the code `incompatibleTables` if a database does not fit; what `publish` throws is its
    ///   message.
    @discardableResult
    package func migrate(
        _ schemas: SchemaHistory, epoch: String, publishing publish: @escaping @Sendable () async throws -> Bool
    ) async throws(RecordStoreError) -> [MigrationPlan]? {
        try await MigrationRun(schemas: schemas, epoch: epoch, wait: migrationWait, publish: publish).run(shards)
    }

    /// Creates and extends the tables for versions that are published.
    @discardableResult
    package func migrate(
        _ schemas: SchemaHistory, epoch: String
    ) async throws(RecordStoreError) -> [MigrationPlan] {
        try await migrate(schemas, epoch: epoch) { true } ?? []
    }

    // MARK: Reading

    package func position(of partition: Int) async throws(RecordStoreError) -> StoredPosition? {
        try await prepared(partition).position(of: partition)
    }

    /// The existing rows, table by table.
    package func rows(
        _ keys: [RowKey], in partition: Int, schemaOrdinal: Int, maximumBytes: Int
    ) async throws(RecordStoreError) -> RowsRead {
        let tables = try tables.get()
        return try await prepared(partition).read { connection in
            try RowLookup.rows(keys, connection, tables, schemaOrdinal: schemaOrdinal, maximumBytes: maximumBytes)
        }
    }

    package func progress(
        _ requests: [ProgressRequest], in partition: Int
    ) async throws(RecordStoreError) -> [DeviceProgress] {
        _ = try tables.get()
        let shard = try await prepared(partition)
        return try await shard.read { try DevicesTable.read(requests, $0, shard.settings.statements) }
    }

    package func usage(of owners: [SyncID], in partition: Int) async throws(RecordStoreError) -> [OwnerUsage] {
        _ = try tables.get()
        let shard = try await prepared(partition)
        return try await shard.read { try OwnersTable.usage(of: owners, $0, shard.settings.statements) }
    }

    package func appliedChanges(
        _ keys: [AppliedChangeKey], in partition: Int
    ) async throws(RecordStoreError) -> [AppliedChange?] {
        _ = try tables.get()
        let shard = try await prepared(partition)
        return try await shard.read { try AppliedChangesTable.read(keys, $0, shard.settings.statements) }
    }

    package func lookup(
        rows keys: [RowKey], progress requests: [ProgressRequest], applied changes: [AppliedChangeKey],
        usage owners: [SyncID], in partition: Int, schemaOrdinal: Int, maximumBytes: Int
    ) async throws(RecordStoreError) -> StepLookup {
        let tables = try tables.get()
        return try await prepared(partition).lookup(of: partition) { connection, statements in
            try StepLookup(
                rows: keys, progress: requests, applied: changes, usage: owners, in: partition, connection, tables,
                schemaOrdinal: schemaOrdinal, maximumBytes: maximumBytes, statements)
        }
    }

    /// Estimates tables above 8 MiB from a sample; waits for snapshots of the same database.
    package func size(of partition: Int) async throws(RecordStoreError) -> PartitionSize {
        try await prepared(partition).size(of: partition)
    }

    /// Names a table that has a row, with its database; `nil` if all tables of all databases are empty.
    package func firstContent() async throws(RecordStoreError) -> String? {
        let tables = try tables.get()
        for shard in shards {
            let system = shard.settings.system
            let names =
                [system.partitions, system.owners, system.devices, system.outcomes, system.appliedChanges].map(
                    \.qualifiedName)
                + tables.layouts.map(\.qualifiedName)
            let filled = try await shard.read { connection in
                try names.first { try connection.queryOnce("SELECT FROM \($0) LIMIT 1").count > 0 }
            }
            if let filled { return "\(shard.database): table \(filled)" }
        }
        return nil
    }

    /// Reads a whole partition; one snapshot of a database runs at a time, others wait.
    ///
    /// - Throws: `RecordStoreError`, `CancellationError`, and what the body throws.
    package func snapshot(
        of partition: Int, schemaOrdinal: Int, _ body: @escaping @Sendable (SnapshotChunk) throws -> Void
    ) async throws {
        let tables = try tables.get()
        try await prepared(partition).snapshot(of: partition, tables, schemaOrdinal: schemaOrdinal, body)
    }

    /// Reads all applied changes of a partition, as a snapshot.
    package func appliedChanges(
        of partition: Int, _ body: @escaping @Sendable ([StoredAppliedChange]) throws -> Void
    ) async throws {
        try await prepared(partition).appliedChanges(of: partition, body)
    }

    // MARK: Writing

    /// Writes steps, all or none, in one transaction with other waiting calls, each of which succeeds or fails separately.
    ///
    /// A cancelled call ends at once, whether or not its steps are written: it is retriable, as after a lost session. All
    /// partitions of one call must be in one database.
    package func commit(_ steps: [StoreStep]) async throws(RecordStoreError) {
        _ = try tables.get()
        guard let first = steps.first else { return }
        let number = first.partition % shards.count
        guard steps.allSatisfy({ $0.partition % shards.count == number }) else {
            throw RecordStoreError(
                .unavailable, message: "partitions of several databases cannot be written in one transaction")
        }
        try await prepared(first.partition).commit(steps)
    }

    /// Closes the store after the running calls; waits for a snapshot first.
    package func close() async {
        for shard in shards { await shard.close() }
    }

    func shard(of partition: Int) -> Shard { shards[partition % shards.count] }
}
