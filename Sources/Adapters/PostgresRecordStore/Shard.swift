import Observability
import Postgres
import RecordStore
import RelationalTables
import SyncModel

/// One database of the store: its sessions, and the calls of `commit` that wait for them.
struct Shard: Sendable {
    /// The database, without a password.
    let database: String
    let settings: ShardSettings
    private let tables: CurrentTables<TableLayout>
    private let pool: PostgresPool
    /// One session, since snapshots are rare; separate, since they are long and must not delay lookups.
    private let snapshots: PostgresPool
    private let parameters: ConnectionParameters
    private let connectTimeout: Duration
    private let snapshotSession: SessionSettings
    private let queue: CommitQueue
    private let history = CommitHistory()
    private let logger: Logger

    static func start(
        _ configuration: PostgresRecordStoreConfiguration, number: Int, _ tables: CurrentTables<TableLayout>,
        logger: Logger
    ) async throws -> Shard {
        let parameters = SessionSettings.completed(configuration.shards[number], writes: !configuration.isReadOnly)
        let session = SessionSettings(configuration, readsSnapshots: false)
        let snapshotSession = SessionSettings(configuration, readsSnapshots: true)
        let pool = try await PostgresPool.start(
            parameters, count: configuration.connections, connectTimeout: configuration.connectTimeout,
            maximumStatements: configuration.maximumStatements, name: "postgres-\(number)", setUp: session.apply)
        do {
            let snapshots = try await PostgresPool.start(
                parameters, count: 1, connectTimeout: configuration.connectTimeout, name: "postgres-all-\(number)",
                setUp: snapshotSession.apply)
            return Shard(
                database: parameters.description, settings: ShardSettings(configuration, number: number),
                tables: tables,
                pool: pool, snapshots: snapshots, parameters: parameters, connectTimeout: configuration.connectTimeout,
                snapshotSession: snapshotSession,
                // More transactions at once share the server's time and make each other's smaller; larger ones delay their
                // callers.
                queue: CommitQueue(maximumWriters: max(configuration.connections / 2, 1), maximumSize: 5000),
                logger: logger)
        } catch {
            await pool.close()
            throw error
        }
    }

    // MARK: Reading

    /// Runs a closure that only reads, and repeats it once if its session is lost.
    func read<Value: Sendable>(
        _ body: @Sendable (PostgresConnection) throws -> Value
    ) async throws(RecordStoreError) -> Value {
        try await translating { try await pool.performRepeating(body) }
    }

    func position(of partition: Int) async throws(RecordStoreError) -> StoredPosition? {
        try await reading(partition, \.self) { try PartitionsTable.read(partition, $0, settings.statements) }
    }

    /// Reads what a step needs, with the partition's position.
    func lookup(
        of partition: Int, _ body: @Sendable (PostgresConnection, SystemStatements) throws -> StepLookup
    ) async throws(RecordStoreError) -> StepLookup {
        try await reading(partition, \.position) { try body($0, settings.statements) }
    }

    /// Reads what holds the position of a partition, which shows whether another store has moved it.
    private func reading<Value: Sendable>(
        _ partition: Int, _ position: KeyPath<Value, StoredPosition?>,
        _ body: @Sendable (PostgresConnection) throws -> Value
    ) async throws(RecordStoreError) -> Value {
        let before = history.positions(of: partition)
        let found = try await read(body)
        history.recordRead(found[keyPath: position], of: partition, before: before)
        return found
    }

    func migrate<Value: Sendable>(
        _ body: @Sendable (PostgresConnection) throws -> Value
    ) async throws(RecordStoreError) -> Value {
        try await translating { try await pool.perform(body) }
    }

    /// A session for a transaction between whose statements something else happens.
    func lease<Value: Sendable>(_ body: (LeasedConnection) async throws -> Value) async throws -> Value {
        do {
            return try await pool.lease(body)
        } catch let error as PostgresError {
            throw RecordStoreError(error, database: database)
        }
    }

    func size(of partition: Int) async throws(RecordStoreError) -> PartitionSize {
        let tables = try tables.get()
        return try await translating {
            try await snapshots.perform { connection in
                let count = PartitionCount(
                    connection: connection, tables: tables, system: settings.system, partition: partition)
                return try count.size()
            }
        }
    }

    /// Reads a whole partition, in a snapshot of its own or in an exported one.
    ///
    /// - Throws: `RecordStoreError`, `CancellationError`, and what the body throws.
    func snapshot(
        of partition: Int, _ tables: PreparedTables<TableLayout>, schemaOrdinal: Int,
        in exported: ExportedSnapshot? = nil, _ body: @escaping @Sendable (SnapshotChunk) throws -> Void
    ) async throws {
        try await readChunks(for: body) {
            RecordStoreError($0, database: database)
        } reading: { body in
            try await (exported?.sessions ?? snapshots).perform { connection in
                let snapshot = try PartitionSnapshot(
                    connection, tables, settings, of: partition, schemaOrdinal: schemaOrdinal, in: exported, body)
                try snapshot.run()
            }
        }
    }

    /// Reads all applied changes of a partition, in a snapshot of its own or in an exported one.
    func appliedChanges(
        of partition: Int, in exported: ExportedSnapshot? = nil,
        _ body: @escaping @Sendable ([StoredAppliedChange]) throws -> Void
    ) async throws {
        try await readChunks(for: body) {
            RecordStoreError($0, database: database)
        } reading: { body in
            try await (exported?.sessions ?? snapshots).perform { connection in
                try AppliedChangeScan(connection, settings, of: partition, in: exported).run(body)
            }
        }
    }

    /// Two sessions: one to export a snapshot, one to read whole tables in it.
    func snapshotSessions() async throws(RecordStoreError) -> PostgresPool {
        try await sessions(2, name: "postgres-at")
    }

    /// Sessions beside those of the pool, with the settings of those that read snapshots.
    func sessions(_ count: Int, name: String) async throws(RecordStoreError) -> PostgresPool {
        try await translating {
            try await PostgresPool.start(
                parameters, count: count, connectTimeout: connectTimeout, name: "\(name)-\(settings.number)",
                setUp: snapshotSession.apply)
        }
    }

    private func translating<Value>(_ body: () async throws -> Value) async throws(RecordStoreError) -> Value {
        do {
            return try await body()
        } catch {
            throw RecordStoreError(error, database: database)
        }
    }

    // MARK: Writing

    /// Writes the steps of one call, in one transaction with other waiting calls.
    func commit(_ steps: [StoreStep]) async throws(RecordStoreError) {
        try await queue.commit(steps) { await writeQueue() }
    }

    /// A session that is lost during a commit leaves its outcome unknown.
    ///
    /// The same steps are then written once more in another
    /// session: if the commit succeeded, the partitions are already at the steps' own positions, which completes them.
    private func writeQueue() async {
        while true {
            let commits = queue.take()
            guard !commits.isEmpty else { return }
            guard let first = await attempt(commits) else { continue }
            // What those whose callers were cancelled have done shows when their partitions are read again.
            let wanted = first.commits.filter { !$0.isAbandoned }
            if wanted.isEmpty { continue }
            if first.error is PostgresError {
                logger.warning(
                    "A session with the tables was lost; its commits are repeated in a new one",
                    [.error: .string(RecordStoreError(first.error, database: database).message)])
            }
            guard let second = await attempt(wanted) else { continue }
            let failure = RecordStoreError(second.error, database: database)
            for commit in second.commits { commit.resolve(.failure(failure)) }
        }
    }

    /// Writes and resolves calls, and returns those that are not resolved; the session is given up once every caller was cancelled.
    private func attempt(_ commits: [PendingCommit]) async -> (commits: [PendingCommit], error: any Error)? {
        let writing = Task { () -> (commits: [PendingCommit], error: any Error)? in
            do {
                let tables = try tables.get()
                return try await pool.perform { connection in
                    let group = GroupCommit(
                        connection: connection, tables: tables, settings: settings, history: history, logger: logger)
                    return group.run(commits).map { ($0.commits, $0.error) }
                }
            } catch {
                return (commits, error)
            }
        }
        for commit in commits {
            commit.whenAbandoned { if commits.allSatisfy(\.isSettled) { writing.cancel() } }
        }
        return await writing.value
    }

    /// Ends the sessions after the running calls.
    func close() async {
        await snapshots.close()
        await pool.close()
    }
}
