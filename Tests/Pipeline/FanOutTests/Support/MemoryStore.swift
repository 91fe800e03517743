import RecordStore
import SyncModel
import Synchronization

/// Tables in memory, as far as a fan-out uses them, whose failures a test sets.
final class MemoryStore: RecordStore {
    private struct Partition {
        var position: StoredPosition?
        var rows: [RowKey: OrderedRow] = [:]
        var outcomes: [DeviceKey: [Outcome]] = [:]

        /// The chunks of a snapshot: few rows each, so that a rebuild takes several.
        var pieces: [SnapshotChunk] {
            guard let position else { return [] }
            var pieces = [SnapshotChunk.position(position)]
            for (_, rows) in Dictionary(grouping: rows.values, by: \.key.owner) {
                var rows = rows.sorted { $0.timeStamp < $1.timeStamp }[...]
                while !rows.isEmpty {
                    pieces.append(.rows(Array(rows.prefix(7))))
                    rows = rows.dropFirst(7)
                }
            }
            for (key, outcomes) in outcomes {
                pieces.append(.outcomes(outcomes.map { StoredOutcome(key: key, outcome: $0) }))
            }
            return pieces
        }
    }

    private struct State {
        var partitions: [Int: Partition] = [:]
        var failures: [(error: RecordStoreError, pieces: Int)] = []
        var onPiece: @Sendable () -> Void = {}
        var snapshotCount = 0
    }

    private let state = Mutex(State())

    /// Lets the next snapshots fail after their position and a number of further chunks, or at the end.
    func failSnapshots(with errors: [RecordStoreError], afterPieces pieces: Int = 0) {
        state.withLock { $0.failures += errors.map { ($0, pieces) } }
    }

    /// Calls a closure before each chunk of a snapshot.
    func onPieces(_ body: @escaping @Sendable () -> Void) { state.withLock { $0.onPiece = body } }

    /// How many snapshots were begun.
    var snapshotCount: Int { state.withLock { $0.snapshotCount } }

    func prepare(_ schemas: SchemaHistory, epoch: String) async throws(RecordStoreError) {}

    func position(of partition: Int) async throws(RecordStoreError) -> StoredPosition? {
        state.withLock { $0.partitions[partition]?.position }
    }

    func rows(
        _ keys: [RowKey], in partition: Int, schemaOrdinal: Int, maximumBytes: Int
    ) async throws(RecordStoreError) -> RowsRead {
        RowsRead(rows: state.withLock { state in keys.compactMap { state.partitions[partition]?.rows[$0] } })
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
                    partition.outcomes[stored.key] = outcomes.suffix(Outcome.keptPerDevice)
                }
                state.partitions[step.partition] = partition
            }
        }
    }

    func usage(of owners: [SyncID], in partition: Int) async throws(RecordStoreError) -> [OwnerUsage] {
        preconditionFailure("a fan-out needs no usage")
    }

    func appliedChanges(
        _ keys: [AppliedChangeKey], in partition: Int
    ) async throws(RecordStoreError) -> [AppliedChange?] {
        preconditionFailure("a fan-out needs no applied changes")
    }

    func appliedChanges(
        of partition: Int, _ body: @escaping @Sendable ([StoredAppliedChange]) throws -> Void
    ) async throws {
        preconditionFailure("a fan-out needs no applied changes")
    }

    func size(of partition: Int) async throws(RecordStoreError) -> PartitionSize {
        state.withLock { state in
            let partition = state.partitions[partition, default: Partition()]
            return PartitionSize(
                rows: partition.rows.count, outcomes: partition.outcomes.values.reduce(0) { $0 + $1.count })
        }
    }

    func snapshot(
        of partition: Int, schemaOrdinal: Int, _ body: @escaping @Sendable (SnapshotChunk) throws -> Void
    ) async throws {
        let (content, failure, onPiece) = state.withLock { state in
            state.snapshotCount += 1
            return (
                state.partitions[partition], state.failures.isEmpty ? nil : state.failures.removeFirst(), state.onPiece
            )
        }
        guard let content else { return }
        for (index, piece) in content.pieces.enumerated() {
            if let failure, index > failure.pieces { throw failure.error }
            onPiece()
            try body(piece)
        }
        if let failure { throw failure.error }
    }

    func close() async {}
}
