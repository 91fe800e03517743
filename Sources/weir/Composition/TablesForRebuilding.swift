import Control
import RecordStore
import SyncModel

/// The tables as a fan-out uses them: they are prepared when a stream is rebuilt, which begins with its position.
///
/// Nothing else of a fan-out needs them, so it starts, and serves the streams that it has, while a database is away.
struct TablesForRebuilding<Tables: RecordStore>: SnapshotSource {
    let tables: Tables
    let control: ControlTopic

    func position(of partition: Int) async throws(RecordStoreError) -> StoredPosition? {
        try await tables.prepare(control.schemas, epoch: control.history.epoch)
        return try await tables.position(of: partition)
    }

    func size(of partition: Int) async throws(RecordStoreError) -> PartitionSize {
        try await tables.size(of: partition)
    }

    func snapshot(
        of partition: Int, schemaOrdinal: Int, _ body: @escaping @Sendable (SnapshotChunk) throws -> Void
    ) async throws {
        try await tables.snapshot(of: partition, schemaOrdinal: schemaOrdinal, body)
    }
}
