import ChangeLog
import Metrics
import SyncModel
import SyncWire
import ThreadExecutor

/// Writes a partition's stream file on its own thread.
actor FileWriter {
    nonisolated let thread: DedicatedThread
    private let partition: ServedPartition
    private let identity: StreamFile.Identity
    private let metrics: FanOutMetrics
    private let checkpointBytes: Int
    private let hasRowIndexes: Bool
    private var file: StreamFile?
    /// The size of the WAL from which it is truncated.
    private var maximumLogSize: Int

    init(
        _ partition: ServedPartition, identity: StreamFile.Identity, _ configuration: FanOutConfiguration,
        metrics: FanOutMetrics
    ) throws(ThreadStartError) {
        thread = try DedicatedThread(name: "weir-fan-w\(partition.number)")
        self.partition = partition
        self.identity = identity
        self.metrics = metrics
        checkpointBytes = configuration.checkpointBytes
        hasRowIndexes = configuration.rowIndexes
        maximumLogSize = 2 * checkpointBytes
    }

    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    /// Opens the file, checks it and reads the heads.
    ///
    /// - Throws: ``StreamFailure``, `CancellationError`.
    func open(check: FanOutConfiguration.Check) throws -> (owners: [SyncID: OwnerHeads], position: StreamPosition) {
        try close()
        maximumLogSize = 2 * checkpointBytes
        let file = try StreamFile(opening: identity, check: check, checkpointBytes: checkpointBytes)
        self.file = file
        do {
            try file.setRowIndexes(hasRowIndexes)
            return (try file.readOwners(), file.state.position)
        } catch {
            throw StreamFailure(cause: error) ?? error
        }
    }

    /// Applies records, and publishes them to readers, waiters and subscribers after the commit.
    ///
    /// - Returns: what was applied, and whether ``truncateLog()`` is due.
    func apply(
        _ records: [OrderedRecord], schemas: SchemaHistory
    ) throws -> (applied: AppliedRecords, isLogFull: Bool) {
        guard let file else { throw StreamFailure.foreignWriter("the file is not open") }
        let partition = partition
        let watch = Stopwatch()
        try file.requireInPlace()
        let applied = try file.apply(
            records[...], schemas: schemas, committed: { partition.committedHeads(of: $0) })
        // Before it is published, so that a client that has an answer finds it counted.
        metrics.record(applied, watch)
        partition.publish(applied)
        return (applied, file.logSize > maximumLogSize)
    }

    /// Empties the WAL, while no thread of this process reads the file.
    func truncateLog() throws {
        guard let file else { throw StreamFailure.foreignWriter("the file is not open") }
        let isEmpty: Bool
        do {
            isEmpty = try file.truncateLog()
        } catch {
            throw StreamFailure(error)
        }
        if isEmpty {
            metrics.logTruncations.add()
            maximumLogSize = 2 * checkpointBytes
        } else {
            // Another process reads the file. Retried when the log has grown as much again.
            maximumLogSize = file.logSize + checkpointBytes
        }
    }

    /// Whether the file contains a record of `ordered`.
    func holds(_ record: LogRecord) throws -> Bool {
        guard let file else { throw StreamFailure.foreignWriter("the file is not open") }
        do {
            let header = try OrderedPieceHeader(decoding: record.value)
            let position = file.state.position
            return header.epoch.utf8.elementsEqual(identity.epoch.utf8)
                && position.hasApplied(header.changesOffset, piece: header.piece)
        } catch {
            // A record that cannot be decoded was not applied.
            return false
        }
    }

    func close() throws {
        guard let file else { return }
        self.file = nil
        do {
            try file.close()
        } catch {
            throw StreamFailure(error)
        }
    }

    /// Deletes the file; no other connection may have it open.
    func deleteFile() throws {
        try close()
        try FileOnDisk.deleteDatabase(identity.path)
    }
}
