import Dispatch
import Glibc
import RecordStore
import SyncModel
import Synchronization

/// Tables that report their commits and snapshots, and block either on request.
final class HeldStore<Base: RecordStore>: RecordStore {
    private struct State {
        var holdsCommits = false
        var waiting: [CheckedContinuation<Void, Never>] = []
        /// What the next snapshot waits for before its first rows.
        var hold: DispatchSemaphore?
        /// The threads on which snapshots were read: each session of the database has one.
        var threads: Set<pthread_t> = []
    }

    private let base: Base
    private let state = Mutex(State())
    /// The offset in `changes` of a partition's tables after each commit.
    let committed = Signal<(partition: Int, nextOffset: Int64)>()
    /// Partitions whose snapshot has given its position and is held back before the rest.
    let held = Signal<Int>()

    init(_ base: Base) { self.base = base }

    /// How many sessions of the database read snapshots, and so how many snapshots could be read at a time.
    var snapshotSessions: Int { state.withLock { $0.threads.count } }

    /// Blocks commits.
    func holdCommits() { state.withLock { $0.holdsCommits = true } }

    /// Unblocks commits.
    func releaseCommits() {
        let waiting = state.withLock { state in
            state.holdsCommits = false
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    /// Blocks the next snapshot after its position until the semaphore is signalled.
    func holdNextSnapshot() -> DispatchSemaphore {
        let hold = DispatchSemaphore(value: 0)
        state.withLock { $0.hold = hold }
        return hold
    }

    // MARK: RecordStore

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
        await withCheckedContinuation { continuation in
            let goesOn = state.withLock { state in
                if state.holdsCommits { state.waiting.append(continuation) }
                return !state.holdsCommits
            }
            if goesOn { continuation.resume() }
        }
        try await base.commit(steps)
        for step in steps { committed.add((step.partition, step.position.state.nextOffset)) }
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
        try await base.snapshot(of: partition, schemaOrdinal: schemaOrdinal) { [self] piece in
            let hold = state.withLock { state -> DispatchSemaphore? in
                guard case .position = piece else { return nil }
                state.threads.insert(pthread_self())
                defer { state.hold = nil }
                return state.hold
            }
            try body(piece)
            if let hold {
                held.add(partition)
                // The store's own thread, which the body may block.
                hold.wait()
            }
        }
    }

    func close() async { await base.close() }
}
