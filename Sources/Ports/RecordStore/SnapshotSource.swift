import SyncModel

/// What a stream is rebuilt from: a partition's position, and its rows and outcomes in one snapshot.
package protocol SnapshotSource: Sendable {
    /// As ``RecordReader/position(of:)``.
    func position(of partition: Int) async throws(RecordStoreError) -> StoredPosition?

    /// The size of a partition's snapshot, for progress reports.
    ///
    /// Much cheaper than reading the snapshot: counted from what the store reads anyway, or estimated from a sample.
    func size(of partition: Int) async throws(RecordStoreError) -> PartitionSize

    /// As ``RecordReader/snapshot(of:schemaOrdinal:_:)``.
    func snapshot(
        of partition: Int, schemaOrdinal: Int, _ body: @escaping @Sendable (SnapshotChunk) throws -> Void
    ) async throws
}
