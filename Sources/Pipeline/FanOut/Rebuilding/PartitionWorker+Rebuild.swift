import ChangeLog
import PartitionSupervision
import RecordStore
import SyncModel
import SyncWire
import ThreadExecutor

extension PartitionWorker {
    /// Rebuilds the file from the tables; `ordered` is followed from their position on.
    ///
    /// - Returns: how many rows it has.
    func rebuild() async throws -> Int {
        // No connection to the old file may outlive it: the last one to be closed would take the new file's log away.
        await readers.evict(partition)
        try await writer.deleteFile()
        guard let position = try await store.position(of: partition.number) else {
            let position = StoredPosition(orderedOffset: try await emptyStart())
            let rebuild = makeRebuild(schema: nil, size: PartitionSize(rows: 0, outcomes: 0))
            return try await finish(rebuild) { try $0.add(.position(position)) }
        }
        let range = try await log.range(of: ordered)
        guard range.start <= position.orderedOffset, position.orderedOffset <= range.end else {
            throw StreamFailure.unavailable(
                "the tables are at offset \(position.orderedOffset) of ordered, which holds \(range.start) to "
                    + "\(range.end): the stream waits for ordering")
        }
        let ordinal = position.state.schemaOrdinal
        let schema = context.schemas.now[ordinal]
        guard schema != nil || ordinal == 0 else { throw LogFault.unknownSchemaNumber(ordinal) }
        let rebuild = makeRebuild(schema: schema, size: try await store.size(of: partition.number))
        rebuild.begin()
        do {
            try await withTaskCancellationHandler {
                try await store.snapshot(of: partition.number, schemaOrdinal: ordinal) { try rebuild.add($0) }
            } onCancel: {
                rebuild.cancel()
            }
        } catch {
            try await writer.thread.run { try rebuild.abandon() }
            throw error
        }
        return try await finish(rebuild)
    }

    private func makeRebuild(schema: SchemaHistory.Entry?, size: PartitionSize) -> Rebuild {
        Rebuild(identity, schema: schema, size: size, configuration, clock: context.clock) { progress, isReport in
            partitionMetrics.record(progress)
            if isReport { report(.rebuilding(progress)) }
        }
    }

    /// Finishes a file on the writer's thread.
    private func finish(
        _ rebuild: Rebuild, after last: @escaping @Sendable (Rebuild) throws -> Void = { _ in }
    ) async throws -> Int {
        try await writer.thread.run {
            do {
                try last(rebuild)
                return try rebuild.finish()
            } catch {
                try rebuild.abandon()
                throw error
            }
        }
    }

    /// The offset of `ordered` from which on a stream is complete without tables, while those hold nothing.
    ///
    /// That is its start if no record before it was deleted: it starts at 0, or with the result of the first record of
    /// `changes`. Else ordering has to write the tables first.
    private func emptyStart() async throws -> Int64 {
        let range = try await log.range(of: ordered)
        if range.start == 0 || range.start == range.end { return range.start }
        let changes = try await log.range(of: TopicPartition(.changes, partition.number))
        let first = try await log.first(of: ordered, from: range.start)
        let piece = try first.map { try OrderedPiece(decoding: $0.value) }
        guard let piece, piece.changesOffset == changes.start, piece.piece == 0 else {
            throw StreamFailure.unavailable(
                "the first results in ordered were deleted, and the tables do not hold them yet: the stream waits until "
                    + "ordering has written the tables")
        }
        return range.start
    }
}
