import SyncModel

/// The tables: rows, device progress and each partition's position, committed together.
///
/// Postgres, or SQLite on one machine.
///
/// Every adapter passes the same conformance suite. A store creates its tables and extends them for schema versions
/// that only add; it rejects any other change with an explanation.
package protocol RecordStore: RecordReader {
    /// Creates or extends the tables for all known versions, oldest to newest. Rows are not changed.
    ///
    /// Tables without a recorded epoch (new ones, and those of stores that did not record it yet) get this epoch
    /// permanently.
    ///
    /// - Parameter epoch: tables with a different epoch are rejected with ``RecordStoreError/Code/incompatibleTables``
    ///   before anything is changed.
    func prepare(_ schemas: SchemaHistory, epoch: String) async throws(RecordStoreError)

    /// Reads what ordering needs before a step: rows, devices' progress, applied changes, owners' usage, and the partition's position, which is
    /// read with them or after them.
    ///
    /// - Parameter maximumBytes: as in ``RecordReader/rows(_:in:schemaOrdinal:maximumBytes:)``.
    /// - Throws: as that and the others, which the default calls one after the other.
    func lookup(
        rows keys: [RowKey], progress requests: [ProgressRequest], applied changes: [AppliedChangeKey],
        usage owners: [SyncID], in partition: Int, schemaOrdinal: Int, maximumBytes: Int
    ) async throws(RecordStoreError) -> StepLookup

    /// Writes the steps of one or more partitions in one transaction, if the position of every partition is still
    /// `expected`; otherwise writes nothing and throws ``RecordStoreError/Code/fenced``.
    ///
    /// A cancelled call may end with a retriable error although its steps are written, or are yet to be.
    func commit(_ steps: [StoreStep]) async throws(RecordStoreError)

    /// The size of a partition's snapshot, for progress reports.
    ///
    /// Much cheaper than reading the snapshot: counted from what the store reads anyway, or estimated from a sample.
    func size(of partition: Int) async throws(RecordStoreError) -> PartitionSize

    /// Waits for running calls.
    func close() async
}

extension RecordStore {
    package func lookup(
        rows keys: [RowKey], progress requests: [ProgressRequest], applied changes: [AppliedChangeKey],
        usage owners: [SyncID], in partition: Int, schemaOrdinal: Int, maximumBytes: Int
    ) async throws(RecordStoreError) -> StepLookup {
        var read = RowsRead(rows: [])
        if !keys.isEmpty {
            read = try await rows(keys, in: partition, schemaOrdinal: schemaOrdinal, maximumBytes: maximumBytes)
        }
        let progress = requests.isEmpty ? [] : try await progress(requests, in: partition)
        let applied = changes.isEmpty ? [] : try await appliedChanges(changes, in: partition)
        let usage = owners.isEmpty ? [] : try await usage(of: owners, in: partition)
        return StepLookup(
            rows: read.rows, unread: read.unread, progress: progress, applied: applied, usage: usage,
            position: try await position(of: partition))
    }
}

/// What the tables hold of what a step touches.
package struct StepLookup: Sendable, Hashable {
    /// The existing rows, tombstones included.
    package var rows: [OrderedRow]
    /// The keys that were not looked up, in their order: the rows before them have the size of a lookup.
    package var unread: [RowKey]
    /// One for each request, in order.
    package var progress: [DeviceProgress]
    /// One for each key of an applied change, in order.
    package var applied: [AppliedChange?]
    /// One for each owner, in order.
    package var usage: [OwnerUsage]
    /// The position of the partition that all of these have at the latest.
    package var position: StoredPosition?

    package init(
        rows: [OrderedRow], unread: [RowKey] = [], progress: [DeviceProgress], applied: [AppliedChange?] = [],
        usage: [OwnerUsage] = [], position: StoredPosition?
    ) {
        self.rows = rows
        self.unread = unread
        self.progress = progress
        self.applied = applied
        self.usage = usage
        self.position = position
    }
}

/// The position of a partition in the store.
package struct StoredPosition: Sendable, Hashable {
    /// The state of ordering after the last step.
    package var state: PartitionState
    /// The offset in `ordered` after the last result that is in the tables (I5).
    package var orderedOffset: Int64

    /// By default the position of an empty partition.
    package init(state: PartitionState = PartitionState(), orderedOffset: Int64 = 0) {
        self.state = state
        self.orderedOffset = orderedOffset
    }
}

/// A request for a device's progress as needed for one batch.
package struct ProgressRequest: Sendable, Hashable {
    package let key: DeviceKey
    /// The batch whose outcome is requested.
    package let batch: Int64

    package init(key: DeviceKey, batch: Int64) {
        self.key = key
        self.batch = batch
    }
}

/// An outcome to store.
///
/// The store removes those beyond a device's newest 16.
package struct StoredOutcome: Sendable, Hashable {
    package let key: DeviceKey
    package let outcome: Outcome

    package init(key: DeviceKey, outcome: Outcome) {
        self.key = key
        self.outcome = outcome
    }
}

/// An applied change to store; each key once, ever.
package struct StoredAppliedChange: Sendable, Hashable {
    /// The device, and the owner whose row it changed.
    package let key: DeviceKey
    package let change: AppliedChange

    package init(key: DeviceKey, change: AppliedChange) {
        self.key = key
        self.change = change
    }

    package var changeKey: AppliedChangeKey { AppliedChangeKey(device: key, id: change.identity.id) }
}

/// What an owner has in the tables.
package struct StoredUsage: Sendable, Hashable {
    package let owner: SyncID
    package let usage: OwnerUsage

    package init(owner: SyncID, usage: OwnerUsage) {
        self.owner = owner
        self.usage = usage
    }
}

/// The result of one or more parts of one partition, committed together.
package struct StoreStep: Sendable, Hashable {
    package let partition: Int
    /// The position that the partition must have; `nil` for a partition without a position.
    package let expected: StoredPosition?
    /// The position after the step.
    package let position: StoredPosition
    /// Each key once, in its final state.
    package let rows: [OrderedRow]
    /// In the order of the parts; each raises its device's highest batch number.
    package let outcomes: [StoredOutcome]
    /// The applied changes that had a `changeId`.
    package let applied: [StoredAppliedChange]
    /// What owners have after the step, where that changed.
    package let usage: [SyncID: OwnerUsage]

    package init(
        partition: Int, expected: StoredPosition?, position: StoredPosition, rows: [OrderedRow],
        outcomes: [StoredOutcome], applied: [StoredAppliedChange] = [], usage: [SyncID: OwnerUsage] = [:]
    ) {
        self.partition = partition
        self.expected = expected
        self.position = position
        self.rows = rows
        self.outcomes = outcomes
        self.applied = applied
        self.usage = usage
    }

    /// The owners whose rows, batches or changes the step stores.
    package var owners: Set<SyncID> {
        var owners = Set<SyncID>()
        for row in rows { owners.insert(row.key.owner) }
        for outcome in outcomes { owners.insert(outcome.key.owner) }
        for change in applied { owners.insert(change.key.owner) }
        owners.formUnion(usage.keys)
        return owners
    }
}

/// The number of a partition's rows, tombstones included, and of the stored outcomes of its devices.
package struct PartitionSize: Sendable, Hashable {
    package var rows: Int
    package var outcomes: Int
    /// Whether both were counted; estimates may be off by a few percent.
    package var isExact: Bool

    package init(rows: Int, outcomes: Int, isExact: Bool = true) {
        self.rows = rows
        self.outcomes = outcomes
        self.isExact = isExact
    }
}

package enum SnapshotChunk: Sendable, Hashable {
    /// The position of the snapshot; the first chunk.
    case position(StoredPosition)
    /// Rows of one owner.
    case rows([OrderedRow])
    case outcomes([StoredOutcome])
    /// After all others: each owner that has any.
    case usage([StoredUsage])
}

/// An error of a store.
package struct RecordStoreError: Error, Sendable, Hashable, CustomStringConvertible {
    package enum Code: Sendable, Hashable {
        /// Another worker advanced the position; this one must stop.
        case fenced
        /// The tables do not match the schema, or have an added constraint that could refuse a row.
        case incompatibleTables
        /// The store refused a row that ingest admitted; the partition stops (I4).
        case refusedRow(RowKey)
        /// The disk is full.
        case storageFull
        /// The files cannot be written.
        case readOnly
        case corrupt
        /// A long read of the tables ended because a migration waits for them: begin it again.
        case givesWay
        /// The store is unreachable, or a read or write failed.
        case unavailable
        case closed
    }

    package let code: Code
    /// For operators.
    package let message: String
    /// Whether the same call may succeed later.
    package let isRetriable: Bool

    package init(_ code: Code, message: String, isRetriable: Bool = false) {
        self.code = code
        self.message = message
        self.isRetriable = isRetriable
    }

    package var description: String { message }
}
