import SyncModel

/// The tables: rows, device progress and each partition's position, written together: Postgres, or SQLite on one machine.
///
/// Every adapter passes the same conformance suite. A store makes its own tables and adds to them when a schema version
/// comes that only adds; anything else it refuses with an explanation.
package protocol RecordStore: RecordReader {
    /// Makes or extends the tables for all versions known, oldest to newest; rows keep what they hold.
    ///
    /// Empty tables become those of the history, for ever; so do tables that were made before stores recorded theirs.
    ///
    /// - Parameter epoch: the history's id. Tables of another are refused as ``RecordStoreError/Code/incompatibleTables``
    ///   before anything is changed.
    func prepare(_ schemas: SchemaHistory, epoch: String) async throws(RecordStoreError)

    /// Writes the steps of one or more partitions in one transaction, each only if its partition still stands at
    /// `expected`: else nothing of any is written, with ``RecordStoreError/Code/fenced``.
    func commit(_ steps: [StoreStep]) async throws(RecordStoreError)

    /// How much a snapshot of a partition has, for whoever shows how far the reading of one has come.
    ///
    /// It costs a small part of the reading: counted by what the store reads all the same, or estimated from a sample.
    func size(of partition: Int) async throws(RecordStoreError) -> PartitionSize

    /// Ends the store after the calls under way.
    func close() async
}

/// Where a partition stands in the store.
package struct StoredPosition: Sendable, Hashable {
    /// Ordering's state after the last step.
    package var state: PartitionState
    /// The offset in `ordered` behind the last result that the tables hold (I5).
    package var orderedOffset: Int64

    /// Makes a position; that of an empty partition by default.
    package init(state: PartitionState = PartitionState(), orderedOffset: Int64 = 0) {
        self.state = state
        self.orderedOffset = orderedOffset
    }
}

/// Asks for a device's progress as far as one batch needs it.
package struct ProgressRequest: Sendable, Hashable {
    /// Whose progress.
    package let key: DeviceKey
    /// The batch whose outcome is wanted.
    package let batch: Int64

    /// Makes a request.
    package init(key: DeviceKey, batch: Int64) {
        self.key = key
        self.batch = batch
    }
}

/// An outcome to keep: the store drops those beyond a device's newest 16.
package struct StoredOutcome: Sendable, Hashable {
    /// Whose.
    package let key: DeviceKey
    /// What became of the batch.
    package let outcome: Outcome

    /// Makes an entry.
    package init(key: DeviceKey, outcome: Outcome) {
        self.key = key
        self.outcome = outcome
    }
}

/// What one or more messages of one partition come to, written together.
package struct StoreStep: Sendable, Hashable {
    /// The partition.
    package let partition: Int
    /// Where it must stand for the step to be written; `nil`: it has none yet.
    package let expected: StoredPosition?
    /// Where it stands afterwards.
    package let position: StoredPosition
    /// Rows in their final state, each key once.
    package let rows: [OrderedRow]
    /// New outcomes in the order of the messages; each raises its device's highest batch number.
    package let outcomes: [StoredOutcome]

    /// Makes a step.
    package init(
        partition: Int, expected: StoredPosition?, position: StoredPosition, rows: [OrderedRow],
        outcomes: [StoredOutcome]
    ) {
        self.partition = partition
        self.expected = expected
        self.position = position
        self.rows = rows
        self.outcomes = outcomes
    }
}

/// How much a partition has: rows, tombstones included, and kept outcomes of devices.
package struct PartitionSize: Sendable, Hashable {
    /// How many rows.
    package var rows: Int
    /// How many outcomes.
    package var outcomes: Int
    /// Whether both were counted; estimates may be some percent off.
    package var isExact: Bool

    /// States a size.
    package init(rows: Int, outcomes: Int, isExact: Bool = true) {
        self.rows = rows
        self.outcomes = outcomes
        self.isExact = isExact
    }
}

/// A piece of a partition's snapshot.
package enum SnapshotChunk: Sendable, Hashable {
    /// The position that all other pieces stand for; comes first.
    case position(StoredPosition)
    /// Rows of one owner.
    case rows([OrderedRow])
    /// Kept outcomes of devices.
    case outcomes([StoredOutcome])
}

/// What went wrong in a store, and whether trying again may help.
package struct RecordStoreError: Error, Sendable, Hashable, CustomStringConvertible {
    /// What went wrong.
    package enum Code: Sendable, Hashable {
        /// Another worker moved the position: this one must stop.
        case fenced
        /// The tables do not fit the schema, or someone added what could refuse a row.
        case incompatibleTables
        /// The store refused a row that ingest admitted: the partition stops (I4).
        case refusedRow(RowKey)
        /// No room on the disk.
        case storageFull
        /// The files cannot be written.
        case readOnly
        /// The files are damaged.
        case corrupt
        /// The store cannot be reached, or a read or write failed.
        case unavailable
        /// The store was closed.
        case closed
    }

    /// What went wrong.
    package let code: Code
    /// The cause, for an operator.
    package let message: String
    /// Whether the same call may succeed later.
    package let isRetriable: Bool

    /// States an error.
    package init(_ code: Code, message: String, isRetriable: Bool = false) {
        self.code = code
        self.message = message
        self.isRetriable = isRetriable
    }

    /// The cause.
    package var description: String { message }
}
