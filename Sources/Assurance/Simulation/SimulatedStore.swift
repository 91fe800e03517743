import MemoryRecordStore
import RecordStore
import SyncModel

/// The tables as one process has them.
struct SimulatedStore: RecordStore {
    let world: World
    let process: SimulatedProcess

    private var store: MemoryRecordStore { world.store }

    func prepare(_ schemas: SchemaHistory, epoch: String) async throws(RecordStoreError) {
        try await arrive()
        try await store.prepare(schemas, epoch: epoch)
    }

    func position(of partition: Int) async throws(RecordStoreError) -> StoredPosition? {
        try await arrive()
        let position = try await store.position(of: partition)
        try await comeBack()
        return position
    }

    func rows(_ keys: [RowKey], in partition: Int, schemaOrdinal: Int) async throws(RecordStoreError) -> [OrderedRow] {
        try await arrive()
        let rows = try await store.rows(keys, in: partition, schemaOrdinal: schemaOrdinal)
        try await comeBack()
        return rows
    }

    func progress(_ requests: [ProgressRequest], in partition: Int) async throws(RecordStoreError) -> [DeviceProgress] {
        try await arrive()
        let progress = try await store.progress(requests, in: partition)
        try await comeBack()
        return progress
    }

    func commit(_ steps: [StoreStep]) async throws(RecordStoreError) {
        try await arrive()
        try await store.commit(steps)
        for step in steps { world.wrote(step, by: process) }
        try await comeBack()
    }

    func size(of partition: Int) async throws(RecordStoreError) -> PartitionSize {
        try await arrive()
        let size = try await store.size(of: partition)
        try await comeBack()
        return size
    }

    func snapshot(
        of partition: Int, schemaOrdinal: Int, _ body: @escaping @Sendable (SnapshotChunk) throws -> Void
    ) async throws {
        try await arrive()
        let breaks = world.faults.strikes(.request)
        try await store.snapshot(of: partition, schemaOrdinal: schemaOrdinal) { piece in
            try body(piece)
            if breaks { throw Self.lost }
        }
    }

    func close() async {}

    private static let lost = RecordStoreError(.unavailable, message: "the connection was lost", isRetriable: true)

    private func arrive() async throws(RecordStoreError) {
        await world.travel(process)
        try requireLife()
        if world.faults.strikes(.request) { throw Self.lost }
    }

    /// The answer's way back; what was asked for is done, though the caller may not learn it.
    private func comeBack() async throws(RecordStoreError) {
        await world.travel(process)
        try requireLife()
        if world.faults.strikes(.answer) { throw Self.lost }
    }

    private func requireLife() throws(RecordStoreError) {
        if !process.isAlive { throw RecordStoreError(.closed, message: "the process has died") }
    }
}
