import RecordStore
import SyncModel
import Synchronization

/// Tables in memory, for simulations and tests of stages.
package final class MemoryRecordStore: RecordStore {
    private struct State {
        var isPrepared = false
        var isClosed = false
    }

    private let tables: MemoryTables
    private let state = Mutex(State())

    package init(_ tables: MemoryTables = MemoryTables()) { self.tables = tables }

    package func prepare(_ schemas: SchemaHistory, epoch: String) async throws(RecordStoreError) {
        try requireOpen()
        try change { content throws(RecordStoreError) in try content.prepare(schemas, epoch: epoch) }
        state.withLock { if !schemas.entries.isEmpty { $0.isPrepared = true } }
    }

    package func position(of partition: Int) async throws(RecordStoreError) -> StoredPosition? {
        try requireOpen()
        return tables.content.withLock { $0.partitions[partition]?.position }
    }

    package func rows(
        _ keys: [RowKey], in partition: Int, schemaOrdinal: Int, maximumBytes: Int
    ) async throws(RecordStoreError) -> RowsRead {
        try requirePrepared()
        return try change { content throws(RecordStoreError) in
            let schema = try content.schema(schemaOrdinal)
            return RowsRead(keys, maximumBytes: maximumBytes) {
                content.partitions[partition]?.rows[$0]?.shown(in: schema)
            }
        }
    }

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

    package func usage(of owners: [SyncID], in partition: Int) async throws(RecordStoreError) -> [OwnerUsage] {
        try requireOpen()
        return tables.content.withLock { content in
            owners.map { content.partitions[partition]?.usage[$0] ?? OwnerUsage() }
        }
    }

    package func appliedChanges(
        _ keys: [AppliedChangeKey], in partition: Int
    ) async throws(RecordStoreError) -> [AppliedChange?] {
        try requireOpen()
        return tables.content.withLock { content in keys.map { content.partitions[partition]?.applied[$0] } }
    }

    package func commit(_ steps: [StoreStep]) async throws(RecordStoreError) {
        try requirePrepared()
        try change { content throws(RecordStoreError) in try content.commit(steps) }
    }

    package func size(of partition: Int) async throws(RecordStoreError) -> PartitionSize {
        try requirePrepared()
        return tables.content.withLock { content in
            let partition = content.partitions[partition] ?? MemoryTables.Partition()
            return PartitionSize(
                rows: partition.rows.count, outcomes: partition.progress.values.reduce(0) { $0 + $1.outcomes.count })
        }
    }

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
            let chunk = rest.prefix(Self.chunkRows).prefix { $0.key.owner == first.key.owner }
            try body(.rows(Array(chunk)))
            rest = rest.dropFirst(chunk.count)
        }
        for (key, known) in partition.progress.sorted(by: { $0.key.isBefore($1.key) }) where !known.outcomes.isEmpty {
            try body(.outcomes(known.outcomes.map { StoredOutcome(key: key, outcome: $0) }))
        }
        for (owner, usage) in partition.usage.sorted(by: { $0.key < $1.key }) where usage != OwnerUsage() {
            try body(.usage([StoredUsage(owner: owner, usage: usage)]))
        }
    }

    package func appliedChanges(
        of partition: Int, _ body: @escaping @Sendable ([StoredAppliedChange]) throws -> Void
    ) async throws {
        try requirePrepared()
        let applied = tables.content.withLock { $0.partitions[partition]?.applied ?? [:] }
        for (key, change) in applied { try body([StoredAppliedChange(key: key.device, change: change)]) }
    }

    package func close() async { state.withLock { $0.isClosed = true } }

    /// Rows of one chunk of a snapshot; few, so that tests see more than one.
    private static let chunkRows = 256

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
        guard state.withLock({ $0.isPrepared }) else {
            throw .incompatible("the tables are used before they are prepared")
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
