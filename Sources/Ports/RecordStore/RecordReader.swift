import SyncModel

/// Reads tables: the half of a ``RecordStore`` that changes nothing.
package protocol RecordReader: Sendable {
    /// Where a partition stands; `nil` before its first step.
    func position(of partition: Int) async throws(RecordStoreError) -> StoredPosition?

    /// The rows with these keys that exist, in one read, tombstones included, with the values of the columns of the
    /// partition's schema ordinal (columns added later have their defaults).
    func rows(_ keys: [RowKey], in partition: Int, schemaOrdinal: Int) async throws(RecordStoreError) -> [OrderedRow]

    /// The progress of devices, each with the outcome of the batch named where one is kept.
    ///
    /// - Returns: one for each request, in order; that of a device never seen is empty.
    func progress(_ requests: [ProgressRequest], in partition: Int) async throws(RecordStoreError) -> [DeviceProgress]

    /// Reads a partition whole, as of one moment: rows in the order of their timeStamps within each owner, outcomes of each
    /// device oldest first.
    ///
    /// - Parameter body: called with the pieces as they are read, the position first, on a thread of the store's own, which
    ///   it may hold; what it throws ends the read.
    func snapshot(
        of partition: Int, schemaOrdinal: Int, _ body: @escaping @Sendable (SnapshotChunk) throws -> Void
    ) async throws
}

/// Tables that can be read as of one moment for as long as it takes, while others go on writing them.
package protocol SnapshotReads: RecordStore {
    /// A partition as it stood at one moment.
    associatedtype Snapshot: RecordReader

    /// Calls a body with a reader of a partition as it stands now: position, rows and progress fit each other in all that it
    /// reads, however often.
    ///
    /// What the store must keep for the moment grows with what is written meanwhile: hold it no longer than needed.
    ///
    /// - Throws: `RecordStoreError`, and what the body throws.
    func withSnapshot<Value: Sendable>(
        of partition: Int, _ body: @Sendable (Snapshot) async throws -> Value
    ) async throws -> Value
}
