import MemoryRecordStore
import RecordStore
import SyncModel

/// The tables as one process sees them.
struct SimulatedStore: RecordStore {
    let world: World
    let process: SimulatedProcess

    private var store: MemoryRecordStore { world.store }

    func prepare(_ schemas: SchemaHistory, epoch: String) async throws(RecordStoreError) {
        try await request()
        try await store.prepare(schemas, epoch: epoch)
    }

    func position(of partition: Int) async throws(RecordStoreError) -> StoredPosition? {
        try await call { () throws(RecordStoreError) in try await store.position(of: partition) }
    }

    func rows(
        _ keys: [RowKey], in partition: Int, schemaOrdinal: Int, maximumBytes: Int
    ) async throws(RecordStoreError) -> RowsRead {
        try await call { () throws(RecordStoreError) in
            try await store.rows(keys, in: partition, schemaOrdinal: schemaOrdinal, maximumBytes: maximumBytes)
        }
    }

    func progress(_ requests: [ProgressRequest], in partition: Int) async throws(RecordStoreError) -> [DeviceProgress] {
        try await call { () throws(RecordStoreError) in try await store.progress(requests, in: partition) }
    }

    func commit(_ steps: [StoreStep]) async throws(RecordStoreError) {
        await world.waitForTables()
        try await call { () throws(RecordStoreError) in
            do throws(RecordStoreError) {
                try await store.commit(steps)
            } catch {
                // Repeated after an answer that was lost before, the step itself has moved the position.
                var isRepeat = true
                for step in steps where try await store.position(of: step.partition) != step.position {
                    isRepeat = false
                }
                if world.isTicking, error.code == .fenced, !isRepeat {
                    world.fail(.progress, "\(process.name) is fenced, though no other worker has written the tables")
                }
                throw error
            }
            for step in steps { world.wrote(step, by: process) }
        }
    }

    func usage(of owners: [SyncID], in partition: Int) async throws(RecordStoreError) -> [OwnerUsage] {
        try await call { () throws(RecordStoreError) in try await store.usage(of: owners, in: partition) }
    }

    /// Applied changes and usage are read with the devices' progress: a lookup with them takes no longer than one without.
    func lookup(
        rows keys: [RowKey], progress requests: [ProgressRequest], applied changes: [AppliedChangeKey],
        usage owners: [SyncID], in partition: Int, schemaOrdinal: Int, maximumBytes: Int
    ) async throws(RecordStoreError) -> StepLookup {
        var read = RowsRead(rows: [])
        if !keys.isEmpty {
            read = try await rows(keys, in: partition, schemaOrdinal: schemaOrdinal, maximumBytes: maximumBytes)
        }
        var (progress, applied, usage): ([DeviceProgress], [AppliedChange?], [OwnerUsage]) = ([], [], [])
        if !requests.isEmpty || !changes.isEmpty || !owners.isEmpty {
            (progress, applied, usage) = try await call { () throws(RecordStoreError) in
                (
                    try await store.progress(requests, in: partition),
                    try await store.appliedChanges(changes, in: partition),
                    try await store.usage(of: owners, in: partition)
                )
            }
        }
        return StepLookup(
            rows: read.rows, unread: read.unread, progress: progress, applied: applied, usage: usage,
            position: try await position(of: partition))
    }

    func appliedChanges(
        _ keys: [AppliedChangeKey], in partition: Int
    ) async throws(RecordStoreError) -> [AppliedChange?] {
        try await call { () throws(RecordStoreError) in try await store.appliedChanges(keys, in: partition) }
    }

    func appliedChanges(
        of partition: Int, _ body: @escaping @Sendable ([StoredAppliedChange]) throws -> Void
    ) async throws {
        try await request()
        try await store.appliedChanges(of: partition, body)
    }

    func size(of partition: Int) async throws(RecordStoreError) -> PartitionSize {
        try await call { () throws(RecordStoreError) in try await store.size(of: partition) }
    }

    func snapshot(
        of partition: Int, schemaOrdinal: Int, _ body: @escaping @Sendable (SnapshotChunk) throws -> Void
    ) async throws {
        try await request()
        let isLost = world.faults.strikes(.request)
        try await store.snapshot(of: partition, schemaOrdinal: schemaOrdinal) { piece in
            try body(piece)
            if isLost { throw Self.lost }
        }
    }

    func close() async {}

    private static let lost = RecordStoreError(.unavailable, message: "the connection was lost", isRetriable: true)

    private func call<Value>(
        _ body: () async throws(RecordStoreError) -> Value
    ) async throws(RecordStoreError) -> Value {
        try await request()
        let value = try await body()
        try await answer()
        return value
    }

    private func request() async throws(RecordStoreError) {
        await world.delay(process)
        try requireLife()
        if world.faults.strikes(.request) { throw Self.lost }
    }

    /// Delays or loses the answer to a request that was carried out.
    private func answer() async throws(RecordStoreError) {
        await world.delay(process)
        try requireLife()
        if world.faults.strikes(.answer) { throw Self.lost }
    }

    private func requireLife() throws(RecordStoreError) {
        if !process.isAlive { throw RecordStoreError(.closed, message: "the process has died") }
    }
}
