import ChangeLog
import Observability
import Ordering
import PartitionSupervision
import RecordStore
import SyncModel
import SyncWire

/// Orders one partition of `changes` anew into other tables, with the stage that orders it in the pipeline.
///
/// Nothing is written to the log: what ordering publishes is held against what `ordered` has.
struct PartitionReplay<Log: ChangeLog, Store: RecordStore>: Sendable {
    let partition: Int
    private let log: Log
    let store: Store
    private let history: History
    let schemas: SchemaHistory
    private let configuration: OrderingConfiguration
    private let logger: Logger
    private let progress: @Sendable (Int) -> Void
    /// What `ordered` has, compared as far as the replay has come.
    let published: OrderedComparison<Log>

    init(
        _ partition: Int, log: Log, into store: Store, history: History, schemas: SchemaHistory,
        configuration: OrderingConfiguration, logger: Logger, progress: @escaping @Sendable (Int) -> Void
    ) async throws {
        self.partition = partition
        self.log = log
        self.store = store
        self.history = history
        self.schemas = schemas
        self.configuration = configuration
        self.logger = logger
        self.progress = progress
        let position = try await store.position(of: partition)
        published = try await OrderedComparison(
            log, partition: partition, schemas: schemas, from: position?.state.nextOffset ?? 0)
    }

    /// Goes on until the messages before an offset of `changes` are in the tables.
    ///
    /// - Parameter end: at most where `changes` ends.
    /// - Throws: `OrderingError` for a message that cannot be ordered; `ChangeLogError`, `RecordStoreError`.
    func advance(to end: Int64) async throws {
        let start = try await position().state.nextOffset
        guard start < end else { return }
        let service = OrderingService(
            StageContext(
                log: ReplayLog(base: log, work: start..<end, published: published, progress: progress),
                history: history, schemas: KnownSchemas(schemas), logger: logger),
            store: ReplayStore(base: store), configuration: configuration)
        do {
            try await service.order(partition)
        } catch is EndOfRange {
            // Everything before the end is ordered and written.
        }
    }

    /// Where the tables stand.
    func position() async throws -> StoredPosition {
        try await store.position(of: partition) ?? StoredPosition()
    }

    /// The offset in `changes` behind a message whose result `ordered` has whole, the newest that its end tells of.
    ///
    /// Tables may stand anywhere before the newest result; ordering goes on from there and repeats what follows (I5). Where
    /// `ordered` keeps nothing nobody knows how far it went, and ordering makes everything.
    static func publishedEnd(of partition: Int, in log: Log) async throws -> Int64 {
        let place = TopicPartition(.ordered, partition)
        let (changes, ordered) = try await (log.range(of: TopicPartition(.changes, partition)), log.range(of: place))
        var length: Int64 = 64
        while true {
            let start = max(ordered.start, ordered.end - length)
            var newest: Int64?
            try await log.forEachRecord(of: place, from: start, to: ordered.end) { records in
                for record in records {
                    do {
                        let header = try OrderedPieceHeader(decoding: record.value)
                        if header.isLast { newest = max(newest ?? 0, header.changesOffset) }
                    } catch {
                        // The comparison of `ordered` tells of it.
                        continue
                    }
                }
            }
            if let newest { return min(newest + 1, changes.end) }
            guard start > ordered.start else { return 0 }
            length *= 8
        }
    }
}

/// The tables of a replay: nobody frees the disk or mends the server while ordering waits, so nothing is tried again.
struct ReplayStore<Base: RecordStore>: RecordStore {
    let base: Base

    func prepare(_ schemas: SchemaHistory, epoch: String) async throws(RecordStoreError) {
        try await base.prepare(schemas, epoch: epoch)
    }

    func position(of partition: Int) async throws(RecordStoreError) -> StoredPosition? {
        try await base.position(of: partition)
    }

    func rows(
        _ keys: [RowKey], in partition: Int, schemaOrdinal: Int
    ) async throws(RecordStoreError) -> [OrderedRow] {
        try await base.rows(keys, in: partition, schemaOrdinal: schemaOrdinal)
    }

    func progress(
        _ requests: [ProgressRequest], in partition: Int
    ) async throws(RecordStoreError) -> [DeviceProgress] {
        try await base.progress(requests, in: partition)
    }

    func commit(_ steps: [StoreStep]) async throws(RecordStoreError) {
        do {
            try await base.commit(steps)
        } catch {
            throw RecordStoreError(error.code, message: error.message)
        }
    }

    func size(of partition: Int) async throws(RecordStoreError) -> PartitionSize {
        try await base.size(of: partition)
    }

    func snapshot(
        of partition: Int, schemaOrdinal: Int, _ body: @escaping @Sendable (SnapshotChunk) throws -> Void
    ) async throws {
        try await base.snapshot(of: partition, schemaOrdinal: schemaOrdinal, body)
    }

    func close() async { await base.close() }
}
