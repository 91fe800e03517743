import SyncModel

/// The read-only part of a ``RecordStore``.
package protocol RecordReader: Sendable {
    /// `nil` before the partition's first step.
    func position(of partition: Int) async throws(RecordStoreError) -> StoredPosition?

    /// The existing rows with these keys, tombstones included, in one read, with the values of the columns of the
    /// partition's schema ordinal (columns added later have their defaults).
    ///
    /// - Parameter maximumBytes: the read ends with the row that brings the values to about this size. It has the first row at
    ///   least, and may have the first of every table.
    func rows(
        _ keys: [RowKey], in partition: Int, schemaOrdinal: Int, maximumBytes: Int
    ) async throws(RecordStoreError) -> RowsRead

    /// The progress of devices, each with the outcome of the requested batch if it is stored.
    ///
    /// - Returns: one per request, in order; empty for an unknown device.
    func progress(_ requests: [ProgressRequest], in partition: Int) async throws(RecordStoreError) -> [DeviceProgress]

    /// What owners have in the tables.
    ///
    /// - Returns: one per owner, in order; zeros for an unknown one.
    func usage(of owners: [SyncID], in partition: Int) async throws(RecordStoreError) -> [OwnerUsage]

    /// The applied changes that had a `changeId`.
    ///
    /// - Returns: one per key, in order; `nil` where there is none.
    func appliedChanges(
        _ keys: [AppliedChangeKey], in partition: Int
    ) async throws(RecordStoreError) -> [AppliedChange?]

    /// Reads a whole partition in one snapshot, except applied changes: rows by timeStamp within each owner, outcomes of each device oldest
    /// first.
    ///
    /// - Parameter body: called with each chunk, the position first, on a thread of the store, which it may block. An
    ///   error of the body ends the read.
    func snapshot(
        of partition: Int, schemaOrdinal: Int, _ body: @escaping @Sendable (SnapshotChunk) throws -> Void
    ) async throws

    /// Reads all applied changes of a partition that had a `changeId`, in one snapshot and in any order.
    ///
    /// Only verification reads them all: a partition may have more of them than rows, and streams do not need them.
    ///
    /// - Parameter body: as that of a snapshot.
    func appliedChanges(
        of partition: Int, _ body: @escaping @Sendable ([StoredAppliedChange]) throws -> Void
    ) async throws
}

extension RecordReader {
    /// All existing rows with these keys, whatever their size.
    package func rows(
        _ keys: [RowKey], in partition: Int, schemaOrdinal: Int
    ) async throws(RecordStoreError) -> [OrderedRow] {
        try await rows(keys, in: partition, schemaOrdinal: schemaOrdinal, maximumBytes: .max).rows
    }
}

/// The rows of a read of bounded size.
package struct RowsRead: Sendable, Hashable {
    /// The existing rows.
    package var rows: [OrderedRow]
    /// The keys that were not looked up, in their order.
    package var unread: [RowKey]

    package init(rows: [OrderedRow], unread: [RowKey] = []) {
        self.rows = rows
        self.unread = unread
    }

    /// Looks up rows one after the other, up to the one that brings them to a size.
    ///
    /// - Parameter row: the row of a key; `nil` if it does not exist.
    package init<Failure: Error>(
        _ keys: [RowKey], maximumBytes: Int, row: (RowKey) throws(Failure) -> OrderedRow?
    ) throws(Failure) {
        self.init(rows: [])
        var size = 0
        for (index, key) in keys.enumerated() {
            guard size < maximumBytes else {
                unread = Array(keys[index...])
                return
            }
            guard let row = try row(key) else { continue }
            rows.append(row)
            size += row.values.bytes.count
        }
    }
}

/// A store with long-running snapshots, which do not block writers.
package protocol SnapshotReads: RecordStore {
    associatedtype Snapshot: RecordReader

    /// Calls the body with a reader of one snapshot of a partition: all its reads of position, rows and progress are
    /// consistent with each other.
    ///
    /// The store retains more for the snapshot with every concurrent write, so keep it short.
    ///
    /// - Throws: `RecordStoreError`, and errors of the body.
    func withSnapshot<Value: Sendable>(
        of partition: Int, _ body: @Sendable (Snapshot) async throws -> Value
    ) async throws -> Value
}
