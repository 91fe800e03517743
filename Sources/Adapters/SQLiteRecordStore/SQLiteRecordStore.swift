import Metrics
import RecordStore
import SQLite
import SyncModel
import Synchronization

/// The tables in one SQLite file: the store of `weir run`, which needs no server.
///
/// Each table of the schema is a table of its name, with one column for each of its own and Weir's before them, so that
/// the file can be queried with any tool while Weir runs. A power failure may take the newest commits back, position and
/// rows together; ordering makes them again from the log.
///
/// One connection writes: calls of `commit` that come while it is busy share its next transaction. Rows are looked up on
/// other threads, which do not wait for the writer; one more reads snapshots.
package final class SQLiteRecordStore: RecordStore {
    private let writer: DatabaseWriter
    private let readers: DatabaseReaderPool
    private let snapshots: DatabaseReaderPool
    private let line = CommitQueue()
    private let metrics: SQLiteStoreMetrics
    private let prepared = Mutex<PreparedTables?>(nil)

    /// Opens the file, or makes it where there is none.
    ///
    /// - Throws: `RecordStoreError`, of the code `incompatibleTables` where the file is another application's or of a
    ///   newer format; such a file is left as it is.
    package static func open(
        _ configuration: SQLiteRecordStoreConfiguration, metrics: SQLiteStoreMetrics = SQLiteStoreMetrics()
    ) async throws(RecordStoreError) -> SQLiteRecordStore {
        do {
            return try await Opening(configuration, metrics).run()
        } catch {
            throw RecordStoreError(error)
        }
    }

    init(
        writer: DatabaseWriter, readers: DatabaseReaderPool, snapshots: DatabaseReaderPool, metrics: SQLiteStoreMetrics
    ) {
        self.metrics = metrics
        self.writer = writer
        self.readers = readers
        self.snapshots = snapshots
    }

    /// Makes or extends the tables, all or nothing; see ``RecordStore/RecordStore/prepare(_:epoch:)``.
    package func prepare(_ schemas: SchemaHistory, epoch: String) async throws(RecordStoreError) {
        do {
            try await writer.write { connection in try Preparation(connection, schemas, epoch: epoch).run() }
        } catch {
            throw RecordStoreError(error)
        }
        prepared.withLock { known in
            // Calls may overtake each other on their way back.
            if known.map({ $0.schemas.entries.count <= schemas.entries.count }) ?? true {
                known = PreparedTables(schemas)
            }
        }
    }

    /// Where a partition stands; `nil` before its first step.
    package func position(of partition: Int) async throws(RecordStoreError) -> StoredPosition? {
        try await read { connection in try PositionRecord.read(partition, connection) }
    }

    /// The rows with these keys that exist, in the order of the keys.
    package func rows(
        _ keys: [RowKey], in partition: Int, schemaOrdinal: Int
    ) async throws(RecordStoreError) -> [OrderedRow] {
        let tables = try preparedTables()
        return try await read { connection in
            var lookUp = try RowLookUp(connection, tables, schemaOrdinal: schemaOrdinal)
            return try lookUp.rows(keys)
        }
    }

    /// The progress of devices, one for each request.
    package func progress(
        _ requests: [ProgressRequest], in partition: Int
    ) async throws(RecordStoreError) -> [DeviceProgress] {
        try await read { connection in try requests.map { try DeviceRecord.read($0, connection) } }
    }

    /// Writes steps, all or none; together with what other calls brought meanwhile, each of which stands for itself.
    ///
    /// A cancelled caller gets its answer all the same: what was asked to be written is written.
    package func commit(_ steps: [StoreStep]) async throws(RecordStoreError) {
        _ = try preparedTables()
        let outcome = await withCheckedContinuation { completion in
            guard line.append(CommitTicket(steps: steps, completion: completion)) else { return }
            // A task of its own, since the line may hold others' calls, which the caller's end must not touch.
            Task { await commitLine() }
        }
        try outcome.get()
    }

    private func commitLine() async {
        do {
            try await writer.perform { connection in
                let tables = try preparedTables()
                let tickets = line.take()
                if !tickets.isEmpty { GroupCommit(connection, tables, metrics).run(tickets) }
            }
        } catch {
            let failure = RecordStoreError(error)
            for ticket in line.take() { ticket.completion.resume(returning: .failure(failure)) }
        }
    }

    /// How much a partition has, counted by the indexes of keys.
    ///
    /// Waits for snapshots.
    package func size(of partition: Int) async throws(RecordStoreError) -> PartitionSize {
        let tables = try preparedTables()
        do {
            return try await snapshots.read { connection in
                try PartitionCount(connection, tables, of: partition).size()
            }
        } catch {
            throw RecordStoreError(error)
        }
    }

    /// Reads a partition whole; one snapshot at a time, others wait for it.
    ///
    /// While it is read, the write-ahead log grows with every commit.
    ///
    /// - Throws: `RecordStoreError`, `CancellationError`, and what the body throws.
    package func snapshot(
        of partition: Int, schemaOrdinal: Int, _ body: @escaping @Sendable (SnapshotChunk) throws -> Void
    ) async throws {
        let tables = try preparedTables()
        try await readSnapshot(for: body) {
            RecordStoreError($0)
        } reading: { body in
            try await snapshots.read { connection in
                var snapshot = try PartitionSnapshot(
                    connection, tables, of: partition, schemaOrdinal: schemaOrdinal, body)
                try snapshot.run()
            }
        }
    }

    /// Returns when the writing connection has got to it, or has ended: a sign of its life, which writes nothing.
    package func beat() async {
        do {
            try await writer.perform { _ in }
        } catch {
            // A writer that is full works; one that is closed has nothing to do.
        }
    }

    /// Ends the store after the calls under way; a snapshot ends first.
    package func close() async {
        // The writer goes last: it moves the write-ahead log into the file.
        for close in [snapshots.close, readers.close, writer.close] {
            do {
                try await close()
            } catch {
                // Everything committed is in the file or its log, and the next opening finds it there.
                continue
            }
        }
    }

    private func preparedTables() throws(RecordStoreError) -> PreparedTables {
        guard let tables = prepared.withLock({ $0 }) else {
            throw RecordStoreError(.incompatibleTables, message: "the tables are used before they were prepared")
        }
        return tables
    }

    private func read<Value: Sendable>(
        _ body: @Sendable (Connection) throws -> Value
    ) async throws(RecordStoreError) -> Value {
        let watch = Stopwatch()
        defer { metrics.readDuration.record(watch.nanoseconds) }
        do {
            return try await readers.read(body)
        } catch {
            throw RecordStoreError(error)
        }
    }
}
