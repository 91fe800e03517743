import AsyncPrimitives
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
        let result = await Result<Value, any Error>.capturing {
            try await sessions.lease { session in
                // The body may take any time, as in pg_dump.
                let name = try await session.perform { connection in
                    try connection.execute(
                        "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL idle_in_transaction_session_timeout = 0"
                    )
                    return try connection.queryOnce("SELECT pg_catalog.pg_export_snapshot()").text(0, 0)
                }
                return try await body(ExportedSnapshot(sessions: sessions, name: name))
            }
        }
        await sessions.close()
        do {
            return try result.get()
        } catch let error as PostgresError {
            throw RecordStoreError(error, database: shard.database)
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
        _ keys: [RowKey], in partition: Int, schemaOrdinal: Int, maximumBytes: Int
    ) async throws(RecordStoreError) -> RowsRead {
        try await read { connection in
            try RowLookup.rows(
                keys, connection, tables, schemaOrdinal: schemaOrdinal, maximumBytes: maximumBytes,
                isInTransaction: true)
        }
    }

    package func progress(
        _ requests: [ProgressRequest], in partition: Int
    ) async throws(RecordStoreError) -> [DeviceProgress] {
        try await read { connection in try DevicesTable.read(requests, connection, shard.settings.statements) }
    }

    package func usage(of owners: [SyncID], in partition: Int) async throws(RecordStoreError) -> [OwnerUsage] {
        try await read { connection in try OwnersTable.usage(of: owners, connection, shard.settings.statements) }
    }

    package func appliedChanges(
        _ keys: [AppliedChangeKey], in partition: Int
    ) async throws(RecordStoreError) -> [AppliedChange?] {
        try await read { connection in try AppliedChangesTable.read(keys, connection, shard.settings.statements) }
    }

    package func appliedChanges(
        of partition: Int, _ body: @escaping @Sendable ([StoredAppliedChange]) throws -> Void
    ) async throws {
        try await shard.appliedChanges(of: partition, in: exported, body)
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
