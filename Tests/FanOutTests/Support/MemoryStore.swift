import RecordStore
import SyncModel
import Synchronization

/// Tables in memory that obey the port as far as a fan-out uses it, and whose failures a test sets.
final class MemoryStore: RecordStore {
    private struct Partition {
        var position: StoredPosition?
        var rows: [RowKey: OrderedRow] = [:]
        var outcomes: [DeviceKey: [Outcome]] = [:]
    }

    private struct State {
        var partitions: [Int: Partition] = [:]
        var failures: [RecordStoreError] = []
        var snapshotCount = 0
    }

    private let state = Mutex(State())

    /// Lets the next snapshots fail after their position.
    func failSnapshots(with errors: [RecordStoreError]) { state.withLock { $0.failures += errors } }

    /// How many snapshots were begun.
    var snapshotCount: Int { state.withLock { $0.snapshotCount } }

    func prepare(_ schemas: SchemaHistory, epoch: String) async throws(RecordStoreError) {}

    func position(of partition: Int) async throws(RecordStoreError) -> StoredPosition? {
        state.withLock { $0.partitions[partition]?.position }
    }

    func rows(_ keys: [RowKey], in partition: Int, schemaOrdinal: Int) async throws(RecordStoreError) -> [OrderedRow] {
        state.withLock { state in keys.compactMap { state.partitions[partition]?.rows[$0] } }
    }

    func progress(_ requests: [ProgressRequest], in partition: Int) async throws(RecordStoreError) -> [DeviceProgress] {
        state.withLock { state in
            requests.map { request in
                let outcomes = state.partitions[partition]?.outcomes[request.key] ?? []
                return DeviceProgress(
                    highestBatch: outcomes.map(\.batch).max() ?? 0,
                    outcome: outcomes.first { $0.batch == request.batch })
            }
        }
    }

    func commit(_ steps: [StoreStep]) async throws(RecordStoreError) { write(steps) }

    /// Writes steps.
    func write(_ steps: [StoreStep]) {
        state.withLock { state in
            for step in steps {
                var partition = state.partitions[step.partition, default: Partition()]
                partition.position = step.position
                for row in step.rows { partition.rows[row.key] = row }
                for stored in step.outcomes {
                    let outcomes = partition.outcomes[stored.key, default: []] + [stored.outcome]
                    partition.outcomes[stored.key] = outcomes.suffix(Outcome.kept)
                }
                state.partitions[step.partition] = partition
            }
        }
    }

    func snapshot(
        of partition: Int, schemaOrdinal: Int, _ body: @escaping @Sendable (SnapshotPiece) throws -> Void
    ) async throws {
        let (content, failure) = state.withLock { state in
            state.snapshotCount += 1
            return (state.partitions[partition], state.failures.isEmpty ? nil : state.failures.removeFirst())
        }
        guard let content, let position = content.position else { return }
        try body(.position(position))
        if let failure { throw failure }
        let owners = Dictionary(grouping: content.rows.values) { $0.key.owner }
        for rows in owners.values {
            // Small pieces, so that a rebuild takes several.
            var rows = rows.sorted { $0.timeStamp < $1.timeStamp }[...]
            while !rows.isEmpty {
                try body(.rows(Array(rows.prefix(7))))
                rows = rows.dropFirst(7)
            }
        }
        for (key, outcomes) in content.outcomes {
            try body(.outcomes(outcomes.map { StoredOutcome(key: key, outcome: $0) }))
        }
    }

    func close() async {}
}
