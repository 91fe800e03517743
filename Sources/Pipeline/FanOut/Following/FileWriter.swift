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
    private var file: StreamFile?

    init(
        _ partition: ServedPartition, identity: StreamFile.Identity, metrics: FanOutMetrics
    ) throws(ThreadStartError) {
        thread = try DedicatedThread(name: "weir-fan-w\(partition.number)")
        self.partition = partition
        self.identity = identity
        self.metrics = metrics
    }

    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    /// Opens the file, checks it and reads the heads.
    ///
    /// - Throws: ``StreamFailure``, `CancellationError`.
    func open(check: FanOutConfiguration.Check) throws -> (owners: [SyncID: OwnerHeads], position: StreamPosition) {
        try close()
        let file = try StreamFile(opening: identity, check: check)
        self.file = file
        do {
            return (try file.readOwners(), file.state.position)
        } catch {
            throw StreamFailure(cause: error) ?? error
        }
    }

    /// Applies records, and publishes them to readers, waiters and subscribers after the commit.
    func apply(_ records: [OrderedRecord], schemas: SchemaHistory) throws -> AppliedRecords {
        guard let file else { throw StreamFailure.foreignWriter("the file is not open") }
        let partition = partition
        let watch = Stopwatch()
        try file.requireInPlace()
        let applied = try file.apply(
            records[...], schemas: schemas, committed: { partition.committedHeads(of: $0) })
        // Before it is published, so that a client that has an answer finds it counted.
        metrics.record(applied, watch)
        partition.publish(applied)
        return applied
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
