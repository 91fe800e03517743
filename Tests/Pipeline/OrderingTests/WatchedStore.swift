import MemoryChangeLog
import RecordStore
import SQLiteRecordStore
import SyncModel
import Synchronization

/// Tables in a file of their own, which tell a test what is asked of them, and fail or wait where it wants.
final class WatchedStore: RecordStore {
    enum Event: Sendable {
        case readRows(partition: Int)
        /// What was found, with the size of the values.
        case found(rows: Int, bytes: Int)
        /// Asked to write, before anything else.
        case committing([StoreStep])
        case committed([StoreStep])
        case ended
    }

    typealias Hook = @Sendable (_ number: Int) async throws(RecordStoreError) -> Void

    let events = Signal<Event>()
    private let base: any RecordStore
    private let beforeCommit: Hook
    private let beforeRead: Hook
    private let beforePosition: Hook
    private let counts = Mutex((commits: 0, reads: 0, positions: 0))

    /// - Parameters:
    ///   - beforeCommit: called with the commit's number, from 0.
    ///   - beforeRead: called with the number of the read of rows, from 0.
    ///   - beforePosition: called with the number of the read of the first partition's position, from 0.
    init(
        _ base: any RecordStore, beforeCommit: @escaping Hook = { _ in }, beforeRead: @escaping Hook = { _ in },
        beforePosition: @escaping Hook = { _ in }
    ) {
        self.base = base
        self.beforeCommit = beforeCommit
        self.beforeRead = beforeRead
        self.beforePosition = beforePosition
    }

    /// Tables with whose first read of rows the log begins to withhold what is written to it.
    static func pausing(
        _ log: MemoryChangeLog, _ base: SQLiteRecordStore, beforeCommit: @escaping Hook = { _ in }
    ) -> WatchedStore {
        WatchedStore(base, beforeCommit: beforeCommit) { number in if number == 0 { log.pause() } }
    }

    /// Waits until the tables of a partition hold the messages before an offset, or the stage has ended.
    func until(_ offset: Int64, in partition: Int = 0) async {
        await events.until { events in
            events.contains { event in
                switch event {
                case .committed(let steps):
                    steps.contains { $0.partition == partition && $0.position.state.nextOffset >= offset }
                case .ended: true
                default: false
                }
            }
        }
    }

    /// Waits until rows were read so many times, or the stage has ended.
    func untilReads(_ count: Int) async {
        await events.until { events in
            var reads = 0
            for event in events {
                switch event {
                case .readRows: reads += 1
                case .ended: return true
                default: break
                }
            }
            return reads >= count
        }
    }

    /// How many rows each read found, and their size.
    var reads: [(rows: Int, bytes: Int)] {
        events.facts.compactMap { if case .found(let rows, let bytes) = $0 { (rows, bytes) } else { nil } }
    }

    func prepare(_ schemas: SchemaHistory, epoch: String) async throws(RecordStoreError) {
        try await base.prepare(schemas, epoch: epoch)
    }

    func position(of partition: Int) async throws(RecordStoreError) -> StoredPosition? {
        if partition == 0 {
            let number = counts.withLock { counts in
                counts.positions += 1
                return counts.positions - 1
            }
            try await beforePosition(number)
        }
        return try await base.position(of: partition)
    }

    func rows(
        _ keys: [RowKey], in partition: Int, schemaOrdinal: Int, maximumBytes: Int
    ) async throws(RecordStoreError) -> RowsRead {
        let number = counts.withLock { counts in
            counts.reads += 1
            return counts.reads - 1
        }
        events.add(.readRows(partition: partition))
        try await beforeRead(number)
        let read = try await base.rows(
            keys, in: partition, schemaOrdinal: schemaOrdinal, maximumBytes: maximumBytes)
        events.add(.found(rows: read.rows.count, bytes: read.rows.reduce(0) { $0 + $1.values.jsonSize }))
        return read
    }

    func progress(
        _ requests: [ProgressRequest], in partition: Int
    ) async throws(RecordStoreError) -> [DeviceProgress] {
        try await base.progress(requests, in: partition)
    }

    func commit(_ steps: [StoreStep]) async throws(RecordStoreError) {
        let number = counts.withLock { counts in
            counts.commits += 1
            return counts.commits - 1
        }
        events.add(.committing(steps))
        try await beforeCommit(number)
        try await base.commit(steps)
        events.add(.committed(steps))
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
