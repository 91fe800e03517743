import Metrics
import RecordStore
import RelationalTables
import SQLite
import SyncModel

/// The tables in one SQLite file: the store of `weir run`, which needs no server.
///
/// Each table of the schema is a table of the same name, with Weir's columns before its own, and can be queried with any tool
/// while Weir runs. A power failure may lose the newest commits, position and rows together; ordering repeats them from the
/// log.
///
/// One connection writes: calls of `commit` that arrive while it is busy share its next transaction. Lookups run on other
/// threads and do not wait for the writer; one more reads snapshots.
package final class SQLiteRecordStore: RecordStore {
    private let path: String
    private let writer: DatabaseWriter
    private let readers: DatabaseReaderPool
    private let snapshots: DatabaseReaderPool
    private let queue = CommitQueue(maximumWriters: 1, maximumSize: .max)
    private let metrics: SQLiteStoreMetrics
    private let tables = CurrentTables<TableLayout>()

    private init(
        path: String, writer: DatabaseWriter, readers: DatabaseReaderPool, snapshots: DatabaseReaderPool,
        metrics: SQLiteStoreMetrics
    ) {
        self.path = path
        self.metrics = metrics
        self.writer = writer
        self.readers = readers
        self.snapshots = snapshots
    }

    // MARK: Opening

    /// Opens the file and creates it if it is missing.
    ///
    /// - Throws: `RecordStoreError`, of the code `incompatibleTables` if the file belongs to another application or has a newer
    ///   format; such a file is not changed.
    package static func open(
        _ configuration: SQLiteRecordStoreConfiguration, metrics: SQLiteStoreMetrics = SQLiteStoreMetrics()
    ) async throws(RecordStoreError) -> SQLiteRecordStore {
        var close: [() async throws -> Void] = []
        do {
            let writer = try await openWriter(configuration)
            close.append(writer.close)
            let readers = try await openReaders(configuration, count: configuration.readerThreads)
            close.append(readers.close)
            // One thread, since snapshots are rare; a pool of its own, since they are long and must not delay lookups.
            let snapshots = try await openReaders(configuration, count: 1)
            return SQLiteRecordStore(
                path: configuration.path, writer: writer, readers: readers, snapshots: snapshots, metrics: metrics)
        } catch {
            var failure = error
            for close in close.reversed() {
                do { try await close() } catch { failure = error }
            }
            throw RecordStoreError(failure, database: configuration.path)
        }
    }

    private static func openWriter(_ configuration: SQLiteRecordStoreConfiguration) async throws -> DatabaseWriter {
        let options = ConnectionOptions(
            cacheSize: configuration.cacheBytes, busyTimeoutMilliseconds: configuration.busyTimeoutMilliseconds)
        try await StoreFile.check(path: configuration.path, options: options)
        let writer = try await DatabaseWriter.open(
            path: configuration.path,
            write: WriteOptions(
                synchronous: .normal, pageSize: SQLiteRecordStoreConfiguration.pageSize,
                walAutocheckpoint: configuration.checkpointPages),
            options: options)
        do {
            if let bytes = configuration.maximumBytes {
                let pages = bytes / SQLiteRecordStoreConfiguration.pageSize
                try await writer.perform { connection in try connection.execute("PRAGMA max_page_count = \(pages)") }
            }
            try await writer.write { connection in try StoreFile.create(connection) }
        } catch {
            try await writer.close()
            throw error
        }
        return writer
    }

    private static func openReaders(
        _ configuration: SQLiteRecordStoreConfiguration, count: Int
    ) async throws -> DatabaseReaderPool {
        try await DatabaseReaderPool.open(
            path: configuration.path, count: count,
            options: ConnectionOptions(
                cacheSize: max(configuration.cacheBytes / 4, 1024),
                busyTimeoutMilliseconds: configuration.busyTimeoutMilliseconds))
    }

    /// Creates or extends the tables, all or nothing; see ``RecordStore/RecordStore/prepare(_:epoch:)``.
    package func prepare(_ schemas: SchemaHistory, epoch: String) async throws(RecordStoreError) {
        try await translating {
            try await writer.write { connection in try Migration(connection, schemas, epoch: epoch).run() }
        }
        tables.update(PreparedTables(schemas, schemas.newest?.schema.tables.map(TableLayout.init) ?? []))
    }

    // MARK: Reading

    package func position(of partition: Int) async throws(RecordStoreError) -> StoredPosition? {
        try await read { connection in try PartitionsTable.read(partition, connection) }
    }

    /// The existing rows, in the order of the keys.
    package func rows(
        _ keys: [RowKey], in partition: Int, schemaOrdinal: Int, maximumBytes: Int
    ) async throws(RecordStoreError) -> RowsRead {
        let tables = try tables.get()
        return try await read { connection in
            var lookup = try RowLookup(connection, tables, schemaOrdinal: schemaOrdinal)
            return try lookup.rows(keys, maximumBytes: maximumBytes)
        }
    }

    package func progress(
        _ requests: [ProgressRequest], in partition: Int
    ) async throws(RecordStoreError) -> [DeviceProgress] {
        try await read { connection in try requests.map { try DevicesTable.read($0, connection) } }
    }

    /// All in one read of a connection; the position last.
    package func lookup(
        rows keys: [RowKey], progress requests: [ProgressRequest], applied changes: [AppliedChangeKey],
        usage owners: [SyncID], in partition: Int, schemaOrdinal: Int, maximumBytes: Int
    ) async throws(RecordStoreError) -> StepLookup {
        let tables = try tables.get()
        return try await read { connection in
            var found = RowsRead(rows: [])
            if !keys.isEmpty {
                var lookup = try RowLookup(connection, tables, schemaOrdinal: schemaOrdinal)
                found = try lookup.rows(keys, maximumBytes: maximumBytes)
            }
            return StepLookup(
                rows: found.rows, unread: found.unread,
                progress: try requests.map { try DevicesTable.read($0, connection) },
                applied: try AppliedChangesTable.read(changes, connection),
                usage: try owners.map { try PartitionsTable.usage(of: $0, connection) },
                position: try PartitionsTable.read(partition, connection))
        }
    }

    package func usage(of owners: [SyncID], in partition: Int) async throws(RecordStoreError) -> [OwnerUsage] {
        try await read { connection in try owners.map { try PartitionsTable.usage(of: $0, connection) } }
    }

    package func appliedChanges(
        _ keys: [AppliedChangeKey], in partition: Int
    ) async throws(RecordStoreError) -> [AppliedChange?] {
        try await read { connection in try AppliedChangesTable.read(keys, connection) }
    }

    /// Counts a partition's rows by the indexes of keys; waits for snapshots.
    package func size(of partition: Int) async throws(RecordStoreError) -> PartitionSize {
        let tables = try tables.get()
        return try await translating {
            try await snapshots.read { connection in
                try PartitionCount(connection: connection, tables: tables, partition: partition).size()
            }
        }
    }

    /// Reads a whole partition; one snapshot runs at a time, others wait.
    ///
    /// Meanwhile the write-ahead log grows with every commit.
    ///
    /// - Throws: `RecordStoreError`, `CancellationError`, and what the body throws.
    package func snapshot(
        of partition: Int, schemaOrdinal: Int, _ body: @escaping @Sendable (SnapshotChunk) throws -> Void
    ) async throws {
        let tables = try tables.get()
        try await readChunks(for: body) {
            RecordStoreError($0, database: path)
        } reading: { body in
            try await snapshots.read { connection in
                var snapshot = try PartitionSnapshot(
                    connection, tables, of: partition, schemaOrdinal: schemaOrdinal, body)
                try snapshot.run()
            }
        }
    }

    /// Reads all applied changes; waits for snapshots, as they for this.
    package func appliedChanges(
        of partition: Int, _ body: @escaping @Sendable ([StoredAppliedChange]) throws -> Void
    ) async throws {
        try await readChunks(for: body) {
            RecordStoreError($0, database: path)
        } reading: { body in
            try await snapshots.read { connection in
                try AppliedChangesTable.readAll(of: partition, connection, body)
            }
        }
    }

    // MARK: Writing

    /// Writes steps, all or none, in one transaction with other waiting calls, each of which succeeds or fails separately.
    ///
    /// A cancelled call ends at once, whether or not its steps are written.
    package func commit(_ steps: [StoreStep]) async throws(RecordStoreError) {
        _ = try tables.get()
        try await queue.commit(steps) { [self] in await writeQueue() }
    }

    private func writeQueue() async {
        do {
            try await writer.perform { connection in
                let tables = try tables.get()
                // On the writer's thread: calls that arrive while it is busy share the transaction.
                let group = GroupCommit(connection: connection, tables: tables, metrics: metrics)
                for commits in queue.takeAll() { group.run(commits) }
            }
        } catch {
            let failure = RecordStoreError(error, database: path)
            for commit in queue.takeAll().joined() { commit.resolve(.failure(failure)) }
        }
    }

    /// Returns when the writing connection has run an empty call, or has ended: shows that it is not stuck.
    package func beat() async {
        do {
            try await writer.perform { _ in }
        } catch {
            // A writer with a full queue works; a closed one has nothing to do.
        }
    }

    /// Closes the store after the running calls; waits for a snapshot first.
    package func close() async {
        // The writer last: it moves the write-ahead log into the file.
        for close in [snapshots.close, readers.close, writer.close] {
            do {
                try await close()
            } catch {
                // Everything committed is in the file or its log, and the next start finds it there.
                continue
            }
        }
    }

    private func read<Value: Sendable>(
        _ body: @Sendable (Connection) throws -> Value
    ) async throws(RecordStoreError) -> Value {
        let watch = Stopwatch()
        defer { metrics.readDuration.record(watch.nanoseconds) }
        return try await translating { try await readers.read(body) }
    }

    private func translating<Value>(_ body: () async throws -> Value) async throws(RecordStoreError) -> Value {
        do {
            return try await body()
        } catch {
            throw RecordStoreError(error, database: path)
        }
    }
}
