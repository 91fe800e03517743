import RecordStore
import SyncModel
import Synchronization

/// Tables in memory, for simulations and for tests of stages: they keep the port's promises as long as the object lives.
package final class MemoryRecordStore: RecordStore {
    private struct State {
        /// How many schema versions this store was prepared for.
        var prepared = 0
        var isClosed = false
    }

    private let tables: MemoryTables
    private let state = Mutex(State())

    /// Opens tables, empty ones by default.
    package init(_ tables: MemoryTables = MemoryTables()) { self.tables = tables }

    /// Makes or extends the tables of a history.
    package func prepare(_ schemas: SchemaHistory, epoch: String) async throws(RecordStoreError) {
        try requireOpen()
        try change { content throws(RecordStoreError) in try content.prepare(schemas, epoch: epoch) }
        state.withLock { $0.prepared = max($0.prepared, schemas.entries.count) }
    }

    /// Where a partition stands; `nil` before its first step.
    package func position(of partition: Int) async throws(RecordStoreError) -> StoredPosition? {
        try requireOpen()
        return tables.content.withLock { $0.partitions[partition]?.position }
    }

    /// The rows with these keys that exist, in the order of the keys.
    package func rows(
        _ keys: [RowKey], in partition: Int, schemaOrdinal: Int
    ) async throws(RecordStoreError) -> [OrderedRow] {
        try requirePrepared()
        return try change { content throws(RecordStoreError) in
            let schema = try content.schema(schemaOrdinal)
            return keys.compactMap { content.partitions[partition]?.rows[$0]?.shown(in: schema) }
        }
    }

    /// The progress of devices, one for each request.
    package func progress(
        _ requests: [ProgressRequest], in partition: Int
    ) async throws(RecordStoreError) -> [DeviceProgress] {
        try requireOpen()
        return tables.content.withLock { content in
            requests.map { request in
                guard let known = content.partitions[partition]?.progress[request.key] else { return DeviceProgress() }
                return DeviceProgress(
                    highestBatch: known.highest, outcome: known.outcomes.last { $0.batch == request.batch })
            }
        }
    }

    /// Writes steps, all or none.
    package func commit(_ steps: [StoreStep]) async throws(RecordStoreError) {
        try requirePrepared()
        try change { content throws(RecordStoreError) in try content.commit(steps) }
    }

    /// How much a partition has, counted.
    package func size(of partition: Int) async throws(RecordStoreError) -> PartitionSize {
        try requirePrepared()
        return tables.content.withLock { content in
            let partition = content.partitions[partition] ?? MemoryTables.Partition()
            return PartitionSize(
                rows: partition.rows.count, outcomes: partition.progress.values.reduce(0) { $0 + $1.outcomes.count })
        }
    }

    /// Reads a partition whole, as it was when the read began.
    package func snapshot(
        of partition: Int, schemaOrdinal: Int, _ body: @escaping @Sendable (SnapshotChunk) throws -> Void
    ) async throws {
        try requirePrepared()
        let (partition, schema) = try change { content throws(RecordStoreError) in
            (content.partitions[partition] ?? MemoryTables.Partition(), try content.schema(schemaOrdinal))
        }
        try body(.position(partition.position ?? StoredPosition()))
        let rows = partition.rows.values.compactMap { $0.shown(in: schema) }
            .sorted { ($0.key.owner, $0.timeStamp) < ($1.key.owner, $1.timeStamp) }
        var rest = rows[...]
        while let first = rest.first {
            let piece = rest.prefix(Self.pieceRows).prefix { $0.key.owner == first.key.owner }
            try body(.rows(Array(piece)))
            rest = rest.dropFirst(piece.count)
        }
        for (key, known) in partition.progress.sorted(by: { $0.key.isBefore($1.key) }) where !known.outcomes.isEmpty {
            try body(.outcomes(known.outcomes.map { StoredOutcome(key: key, outcome: $0) }))
        }
    }

    /// Refuses every later call.
    package func close() async { state.withLock { $0.isClosed = true } }

    /// Rows of one piece of a snapshot: few, so that whoever reads it meets more than one.
    private static let pieceRows = 256

    private func change<Value>(
        _ body: (inout MemoryTables.Content) throws(RecordStoreError) -> sending Value
    ) throws(RecordStoreError) -> Value {
        try tables.content.withLock { content throws(RecordStoreError) in try body(&content) }
    }

    private func requireOpen() throws(RecordStoreError) {
        if state.withLock({ $0.isClosed }) { throw RecordStoreError(.closed, message: "the store was closed") }
    }

    private func requirePrepared() throws(RecordStoreError) {
        try requireOpen()
        guard state.withLock({ $0.prepared }) > 0 else {
            throw .incompatible("the tables are used before they were prepared")
        }
    }
}

extension DeviceKey {
    fileprivate func isBefore(_ other: DeviceKey) -> Bool {
        (owner, device.caller) == (other.owner, other.device.caller)
            ? device.knowledgeID < other.device.knowledgeID
            : (owner, device.caller) < (other.owner, other.device.caller)
    }
}
