import Observability
import Postgres
import RecordStore
import SyncModel

/// One database of the store: its sessions, and the calls of `commit` that wait for them.
struct Shard: Sendable {
    /// The database, without a password.
    let place: String
    let settings: ShardSettings
    private let pool: PostgresPool
    /// One: snapshots are rare and long, and must not keep look-ups waiting.
    private let snapshots: PostgresPool
    private let parameters: ConnectionParameters
    private let connectTimeout: Duration
    private let snapshotSession: SessionSettings
    private let line: CommitQueue
    private let memory = ShardMemory()
    private let logger: Logger

    static func start(
        _ configuration: PostgresRecordStoreConfiguration, number: Int, logger: Logger
    ) async throws -> Shard {
        let parameters = SessionSettings.completed(configuration.shards[number], writes: !configuration.isReadOnly)
        let session = SessionSettings(configuration, readsSnapshots: false)
        let pool = try await PostgresPool.start(
            parameters, count: configuration.connections, connectTimeout: configuration.connectTimeout,
            name: "postgres-\(number)", setUp: session.apply)
        let snapshotSession = SessionSettings(configuration, readsSnapshots: true)
        do {
            let snapshots = try await PostgresPool.start(
                parameters, count: 1, connectTimeout: configuration.connectTimeout, name: "postgres-all-\(number)",
                setUp: snapshotSession.apply)
            return Shard(
                parameters, configuration, number: number, pool: pool, snapshots: snapshots,
                snapshotSession: snapshotSession, logger: logger)
        } catch {
            await pool.close()
            throw error
        }
    }

    private init(
        _ parameters: ConnectionParameters, _ configuration: PostgresRecordStoreConfiguration, number: Int,
        pool: PostgresPool, snapshots: PostgresPool, snapshotSession: SessionSettings, logger: Logger
    ) {
        place = parameters.description
        settings = ShardSettings(configuration, number: number)
        line = CommitQueue(maximumWriters: max(configuration.connections / 2, 1))
        connectTimeout = configuration.connectTimeout
        self.parameters = parameters
        self.pool = pool
        self.snapshots = snapshots
        self.snapshotSession = snapshotSession
        self.logger = logger
    }

    /// Runs a closure that only reads, once more where its session turns out to be lost: a server that was started again
    /// has ended all of them.
    func read<Value: Sendable>(
        _ body: @Sendable (PostgresConnection) throws -> Value
    ) async throws(RecordStoreError) -> Value {
        do {
            do {
                return try await pool.perform(body)
            } catch let error as PostgresError where error.isConnectionLost {
                return try await pool.perform(body)
            }
        } catch {
            throw RecordStoreError(error, place: place)
        }
    }

    /// Forgets which owners the tables are known to hold.
    func forgetOwners() { memory.forgetOwners() }

    /// Runs a closure that changes tables' form.
    func migrate<Value: Sendable>(
        _ body: @Sendable (PostgresConnection) throws -> Value
    ) async throws(RecordStoreError) -> Value {
        do {
            return try await pool.perform(body)
        } catch {
            throw RecordStoreError(error, place: place)
        }
    }

    /// Runs a closure on the session for snapshots.
    func beforeSnapshot<Value: Sendable>(
        _ body: @Sendable (PostgresConnection) throws -> Value
    ) async throws(RecordStoreError) -> Value {
        do {
            return try await snapshots.perform(body)
        } catch {
            throw RecordStoreError(error, place: place)
        }
    }

    /// Reads a partition whole, on the session for snapshots or, of a moment that is held, on one beside it.
    ///
    /// - Throws: `RecordStoreError`, `CancellationError`, and what the body throws.
    func snapshot(
        of partition: Int, _ tables: PreparedTables, schemaOrdinal: Int, at moment: ExportedSnapshot? = nil,
        _ body: @escaping @Sendable (SnapshotChunk) throws -> Void
    ) async throws {
        try await readSnapshot(for: body) {
            RecordStoreError($0, place: place)
        } reading: { body in
            try await (moment?.sessions ?? snapshots).perform { connection in
                let snapshot = try PartitionSnapshot(
                    connection, tables, schema: settings.schema, of: partition, schemaOrdinal: schemaOrdinal,
                    at: moment, body)
                try snapshot.run()
            }
        }
    }

    /// Sessions for a moment that is held: one to hold it, one to read tables whole.
    func sessionsOfMoment() async throws(RecordStoreError) -> PostgresPool {
        do {
            return try await PostgresPool.start(
                parameters, count: 2, connectTimeout: connectTimeout, name: "postgres-at-\(settings.number)",
                setUp: snapshotSession.apply)
        } catch {
            throw RecordStoreError(error, place: place)
        }
    }

    /// Writes the steps of one call, together with what other calls brought meanwhile.
    func commit(_ steps: [StoreStep], _ tables: PreparedTables) async throws(RecordStoreError) {
        let outcome = await withCheckedContinuation { completion in
            let ticket = CommitTicket(steps: steps, tables: tables, completion: completion)
            guard line.append(ticket) else { return }
            // A task of its own, since the line may hold others' calls, which the caller's end must not touch.
            Task { await write() }
        }
        try outcome.get()
    }

    /// Writes what waits until nothing does.
    ///
    /// A session that is lost while a transaction commits leaves open whether it was done: the same steps again, on another
    /// session, find their own position in that case, and are done then.
    private func write() async {
        while true {
            let tickets = line.take()
            guard !tickets.isEmpty else { return }
            guard let first = await attempt(tickets) else { continue }
            if first.error is PostgresError {
                logger.warning(
                    "A session with the tables was lost and is begun again",
                    [.error: .string(RecordStoreError(first.error, place: place).message)])
            }
            guard let second = await attempt(first.tickets) else { continue }
            let failure = RecordStoreError(second.error, place: place)
            for ticket in second.tickets { ticket.completion.resume(returning: .failure(failure)) }
        }
    }

    /// Writes and answers tickets, but for those that are returned.
    private func attempt(
        _ tickets: [CommitTicket]
    ) async -> (tickets: [CommitTicket], error: any Error)? {
        // The newest of them know all columns of the others.
        let newest = tickets.max { $0.tables.schemas.entries.count < $1.tables.schemas.entries.count }
        guard let tables = newest?.tables else { return nil }
        do {
            return try await pool.perform { connection in
                GroupCommit(connection, tables, settings, memory, logger).run(tickets).map { ($0.tickets, $0.error) }
            }
        } catch {
            return (tickets, error)
        }
    }

    /// Ends the sessions after the calls under way.
    func close() async {
        await snapshots.close()
        await pool.close()
    }
}
