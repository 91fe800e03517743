import Dispatch
import Postgres
import RecordStore
import RelationalTables
import SyncModel

/// A snapshot of one database that a session exports: other sessions can begin transactions that read it (`SET TRANSACTION
/// SNAPSHOT`).
struct ExportedSnapshot: Sendable {
    /// The exporting session, and one to read whole tables.
    let sessions: PostgresPool
    /// From `pg_export_snapshot`.
    private let name: String

    /// Exports a snapshot for the duration of a body.
    static func with<Value: Sendable>(
        _ shard: Shard, _ body: @Sendable (ExportedSnapshot) async throws -> Value
    ) async throws -> Value {
        let sessions = try await shard.snapshotSessions()
        do {
            let value = try await export(sessions, database: shard.database, body)
            await sessions.close()
            return value
        } catch {
            await sessions.close()
            throw error
        }
    }

    private static func export<Value: Sendable>(
        _ sessions: PostgresPool, database: String, _ body: @Sendable (ExportedSnapshot) async throws -> Value
    ) async throws -> Value {
        let (names, exported) = AsyncStream.makeStream(of: String.self)
        let end = DispatchSemaphore(value: 0)
        async let transaction: Void = export(sessions, exported, until: end)
        var name: String?
        for await found in names { name = found }
        do {
            guard let name else {
                end.signal()
                try await transaction
                throw CancellationError()
            }
            let value = try await body(ExportedSnapshot(sessions: sessions, name: name))
            end.signal()
            try await transaction
            return value
        } catch {
            end.signal()
            throw (error as? PostgresError).map { RecordStoreError($0, database: database) } ?? error
        }
    }

    /// Keeps the exporting transaction open, which blocks the session's thread; the pool rolls it back.
    private static func export(
        _ sessions: PostgresPool, _ exported: AsyncStream<String>.Continuation, until end: DispatchSemaphore
    ) async throws {
        defer { exported.finish() }
        try await sessions.perform { connection in
            // The body may take any time, as in pg_dump.
            try connection.execute(
                "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL idle_in_transaction_session_timeout = 0")
            exported.yield(try connection.queryOnce("SELECT pg_catalog.pg_export_snapshot()").text(0, 0))
            exported.finish()
            end.wait()
        }
    }

    /// Begins a transaction of another session that reads the snapshot.
    func begin(on connection: PostgresConnection) throws {
        try connection.execute(
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET TRANSACTION SNAPSHOT \(SQLText.literal(name))")
    }
}

/// Reads a partition in one exported snapshot.
package struct PostgresSnapshot: RecordReader {
    let shard: Shard
    let tables: PreparedTables<TableLayout>
    let exported: ExportedSnapshot

    package func position(of partition: Int) async throws(RecordStoreError) -> StoredPosition? {
        try await read { connection in try PartitionsTable.read(partition, connection, shard.settings.statements) }
    }

    /// The existing rows, table by table.
    package func rows(
        _ keys: [RowKey], in partition: Int, schemaOrdinal: Int
    ) async throws(RecordStoreError) -> [OrderedRow] {
        try await read { connection in
            try RowLookup(connection, tables, schemaOrdinal: schemaOrdinal, isInTransaction: true).rows(keys)
        }
    }

    package func progress(
        _ requests: [ProgressRequest], in partition: Int
    ) async throws(RecordStoreError) -> [DeviceProgress] {
        try await read { connection in try DevicesTable.read(requests, connection, shard.settings.statements) }
    }

    package func snapshot(
        of partition: Int, schemaOrdinal: Int, _ body: @escaping @Sendable (SnapshotChunk) throws -> Void
    ) async throws {
        try await shard.snapshot(of: partition, tables, schemaOrdinal: schemaOrdinal, in: exported, body)
    }

    private func read<Value: Sendable>(
        _ body: @Sendable (PostgresConnection) throws -> Value
    ) async throws(RecordStoreError) -> Value {
        try await shard.read { connection in
            try exported.begin(on: connection)
            let value = try body(connection)
            try connection.execute("COMMIT")
            return value
        }
    }
}

extension PostgresRecordStore: SnapshotReads {
    /// Opens two more sessions; Postgres cannot vacuum row versions that are replaced before the body ends.
    package func withSnapshot<Value: Sendable>(
        of partition: Int, _ body: @Sendable (PostgresSnapshot) async throws -> Value
    ) async throws -> Value {
        let tables = try tables.get()
        let shard = shard(of: partition)
        return try await ExportedSnapshot.with(shard) { exported in
            try await body(PostgresSnapshot(shard: shard, tables: tables, exported: exported))
        }
    }
}
