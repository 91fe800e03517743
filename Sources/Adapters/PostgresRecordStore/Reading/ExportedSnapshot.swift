import Dispatch
import Postgres
import RecordStore
import SyncModel

/// A moment of one database that a session holds: every other session can begin a transaction that sees it (`SET
/// TRANSACTION SNAPSHOT`).
struct ExportedSnapshot: Sendable {
    /// Sessions for reading tables whole, beside the one that holds the moment.
    let sessions: PostgresPool
    /// By which Postgres knows the moment.
    private let name: String

    /// Holds the moment of now for a body.
    static func with<Value: Sendable>(
        _ shard: Shard, _ body: @Sendable (ExportedSnapshot) async throws -> Value
    ) async throws -> Value {
        let sessions = try await shard.sessionsOfMoment()
        do {
            let value = try await hold(sessions, place: shard.place, body)
            await sessions.close()
            return value
        } catch {
            await sessions.close()
            throw error
        }
    }

    private static func hold<Value: Sendable>(
        _ sessions: PostgresPool, place: String, _ body: @Sendable (ExportedSnapshot) async throws -> Value
    ) async throws -> Value {
        let (named, naming) = AsyncStream.makeStream(of: String.self)
        let end = DispatchSemaphore(value: 0)
        async let held: Void = hold(sessions, naming, until: end)
        var name: String?
        for await found in named { name = found }
        do {
            guard let name else {
                end.signal()
                try await held
                throw CancellationError()
            }
            let value = try await body(ExportedSnapshot(sessions: sessions, name: name))
            end.signal()
            try await held
            return value
        } catch {
            end.signal()
            throw (error as? PostgresError).map { RecordStoreError($0, place: place) } ?? error
        }
    }

    /// Keeps a transaction open on a session's own thread; it is rolled back at the end.
    private static func hold(
        _ sessions: PostgresPool, _ naming: AsyncStream<String>.Continuation, until end: DispatchSemaphore
    ) async throws {
        defer { naming.finish() }
        try await sessions.perform { connection in
            // How long the body takes is its own matter, as in a dump.
            try connection.execute(
                "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL idle_in_transaction_session_timeout = 0")
            naming.yield(try connection.queryOnce("SELECT pg_catalog.pg_export_snapshot()").text(0, 0))
            naming.finish()
            end.wait()
        }
    }

    /// Begins a transaction of a session that sees the moment.
    func begin(on connection: PostgresConnection) throws {
        try connection.execute(
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET TRANSACTION SNAPSHOT \(SQLText.literal(name))")
    }
}

/// A partition's tables as they stood at one moment.
package struct PostgresSnapshot: RecordReader {
    let shard: Shard
    let tables: PreparedTables
    let held: ExportedSnapshot

    /// Where the partition stood; `nil` before its first step.
    package func position(of partition: Int) async throws(RecordStoreError) -> StoredPosition? {
        try await read { connection in try PositionRecord.read(partition, connection, tables.statements) }
    }

    /// The rows with these keys that existed, table by table.
    package func rows(
        _ keys: [RowKey], in partition: Int, schemaOrdinal: Int
    ) async throws(RecordStoreError) -> [OrderedRow] {
        try await read { connection in
            try RowLookUp(connection, tables, schemaOrdinal: schemaOrdinal, isInTransaction: true).rows(keys)
        }
    }

    /// The progress that devices had, one for each request.
    package func progress(
        _ requests: [ProgressRequest], in partition: Int
    ) async throws(RecordStoreError) -> [DeviceProgress] {
        try await read { connection in try ProgressLookUp.read(requests, connection, tables.statements) }
    }

    /// Reads the partition whole.
    package func snapshot(
        of partition: Int, schemaOrdinal: Int, _ body: @escaping @Sendable (SnapshotChunk) throws -> Void
    ) async throws {
        try await shard.snapshot(of: partition, tables, schemaOrdinal: schemaOrdinal, at: held, body)
    }

    private func read<Value: Sendable>(
        _ body: @Sendable (PostgresConnection) throws -> Value
    ) async throws(RecordStoreError) -> Value {
        try await shard.read { connection in
            try held.begin(on: connection)
            let value = try body(connection)
            try connection.execute("COMMIT")
            return value
        }
    }
}

extension PostgresRecordStore: SnapshotReads {
    /// Holds a partition's database at one moment, with two sessions beside the others.
    ///
    /// Postgres keeps what is deleted or replaced meanwhile until the body has ended.
    package func withSnapshot<Value: Sendable>(
        of partition: Int, _ body: @Sendable (PostgresSnapshot) async throws -> Value
    ) async throws -> Value {
        let tables = try preparedTables()
        let shard = shard(of: partition)
        return try await ExportedSnapshot.with(shard) { held in
            try await body(PostgresSnapshot(shard: shard, tables: tables, held: held))
        }
    }
}
