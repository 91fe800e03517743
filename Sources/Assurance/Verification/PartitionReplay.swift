import ChangeLog
import Observability
import Ordering
import PartitionSupervision
import RecordStore
import SyncModel
import SyncWire

/// Orders one partition of `changes` again into other tables, with the ordering stage itself.
///
/// Nothing is written to the log: what ordering would publish is compared with `ordered`.
struct PartitionReplay<Log: ChangeLog, Store: RecordStore>: Sendable {
    let partition: Int
    let store: Store
    /// The comparison with `ordered`, as far as the replay has come.
    let published: OrderedComparison<Log>
    private let source: ReplaySource<Log>

    init(_ partition: Int, _ source: ReplaySource<Log>, into store: Store) async throws {
        self.partition = partition
        self.source = source
        self.store = store
        let position = try await store.position(of: partition)
        published = try await OrderedComparison(
            source.log, partition: partition, schemas: source.schemas, from: position?.state.nextOffset ?? 0)
    }

    /// Orders until the tables have the records before an offset of `changes`.
    ///
    /// - Parameter end: at most the end of `changes`.
    /// - Throws: `OrderingError` for a record that cannot be ordered; `ChangeLogError`, `RecordStoreError`.
    func advance(to end: Int64) async throws {
        let start = try await position().state.nextOffset
        guard start < end else { return }
        let service = OrderingService(
            StageContext(
                log: ReplayLog(base: source.log, work: start..<end, published: published, progress: source.progress),
                history: source.history, schemas: KnownSchemas(source.schemas, leavingOut: source.skipped),
                logger: source.logger),
            store: ReplayStore(base: store), configuration: source.configuration)
        do {
            try await service.order(partition)
        } catch is EndOfRange {
            // Everything before the end is ordered and written.
        }
    }

    func position() async throws -> StoredPosition {
        try await store.position(of: partition) ?? StoredPosition()
    }

    /// The offset in `changes` after the newest record whose result `ordered` has whole; 0 where `ordered` keeps nothing.
    ///
    /// Tables may be anywhere before the newest result: ordering resumes there and repeats what follows (I5).
    static func publishedEnd(of partition: Int, in log: Log) async throws -> Int64 {
        let topic = TopicPartition(.ordered, partition)
        let (changes, ordered) = try await (log.range(of: TopicPartition(.changes, partition)), log.range(of: topic))
        var length: Int64 = 64
        while true {
            let start = max(ordered.start, ordered.end - length)
            var newest: Int64?
            try await log.forEachRecord(of: topic, from: start, to: ordered.end) { records in
                for record in records {
                    do {
                        let header = try OrderedPieceHeader(decoding: record.value)
                        if header.isLast { newest = max(newest ?? 0, header.changesOffset) }
                    } catch {
                        // The comparison of `ordered` reports it.
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

extension PartitionReplay {
    /// Compares tables with those of the replay, which has advanced to their position.
    func compare(_ position: StoredPosition, of tables: some RecordReader, _ report: inout Report) async throws {
        let made = try await self.position()
        let upper = try await published.nextNewOffset()
        // Any lower one is as right: streams that begin there drop what they have.
        report.add("position", PositionComparison.run(made, position, ordered: 0...upper))
        do {
            let comparison = TableComparison(
                partition: partition, schemas: source.schemas, expected: store, found: tables)
            report.add("tables", try await comparison.content(ordinal: made.state.schemaOrdinal))
        } catch let error as RecordStoreError where error.code != .givesWay {
            report.add("tables", .unreadable(error))
        }
    }
}

extension Finding {
    static func unreadable(_ error: RecordStoreError) -> Finding {
        guard error.code == .corrupt else { return .unknown("they cannot be read: \(error)") }
        return .different(Difference("the tables", expected: "readable", found: error.message), count: 1)
    }
}

/// The log of a replay: `changes` ends at an offset, and what is published to `ordered` is compared with what is there.
struct ReplayLog<Base: ChangeLog>: ChangeLog {
    let base: Base
    /// The records to order: from the tables' position to the end of `changes`.
    let work: Range<Int64>
    let published: OrderedComparison<Base>
    let progress: @Sendable (Int) -> Void

    var partitionCount: Int { base.partitionCount }
    var maximumRecordSize: Int { base.maximumRecordSize }

    func producer() async throws(ChangeLogError) -> ReplayProducer<Base> { ReplayProducer(published) }

    func reader(
        of partition: TopicPartition, from offset: Int64
    ) async throws(ChangeLogError) -> BoundedReader<Base.Reader> {
        let reader = try await base.reader(of: partition, from: offset)
        // Ordering reads one result to check the topic; `ordered` has no end here.
        guard partition.topic == .changes else { return BoundedReader(reader, from: offset, to: .max) }
        return BoundedReader(
            reader, from: offset, to: work.upperBound, countedFrom: work.lowerBound, progress: progress)
    }

    func range(of partition: TopicPartition) async throws(ChangeLogError) -> LogRange {
        let range = try await base.range(of: partition)
        return partition.topic == .changes ? LogRange(start: range.start, end: work.upperBound) : range
    }

    func join(group: String, topic: Topic) async throws(ChangeLogError) -> Base.Membership {
        preconditionFailure("a replay joins no group")
    }
}

/// Writes nothing: the offset of a record is the one that it has in `ordered`.
final class ReplayProducer<Base: ChangeLog>: LogProducer {
    private let published: OrderedComparison<Base>

    init(_ published: OrderedComparison<Base>) { self.published = published }

    func enqueue(_ records: [NewRecord]) async throws(ChangeLogError) -> AppendReceipt {
        var offsets: [Int64] = []
        offsets.reserveCapacity(records.count)
        for record in records { offsets.append(try await published.offset(of: record)) }
        let found = offsets
        return AppendReceipt { .success(found) }
    }

    func close() async {}
}

/// The tables of a replay, whose failed commits are not retriable: ordering would wait while no one repairs the disk.
struct ReplayStore<Base: RecordStore>: RecordStore {
    let base: Base

    func prepare(_ schemas: SchemaHistory, epoch: String) async throws(RecordStoreError) {
        try await base.prepare(schemas, epoch: epoch)
    }

    func position(of partition: Int) async throws(RecordStoreError) -> StoredPosition? {
        try await base.position(of: partition)
    }

    func rows(
        _ keys: [RowKey], in partition: Int, schemaOrdinal: Int, maximumBytes: Int
    ) async throws(RecordStoreError) -> RowsRead {
        try await base.rows(keys, in: partition, schemaOrdinal: schemaOrdinal, maximumBytes: maximumBytes)
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

    func usage(of owners: [SyncID], in partition: Int) async throws(RecordStoreError) -> [OwnerUsage] {
        try await base.usage(of: owners, in: partition)
    }

    func appliedChanges(
        _ keys: [AppliedChangeKey], in partition: Int
    ) async throws(RecordStoreError) -> [AppliedChange?] {
        try await base.appliedChanges(keys, in: partition)
    }

    func appliedChanges(
        of partition: Int, _ body: @escaping @Sendable ([StoredAppliedChange]) throws -> Void
    ) async throws {
        try await base.appliedChanges(of: partition, body)
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
