import AsyncPrimitives
import ChangeLog
import Observability
import PartitionSupervision
import RecordStore
import SyncModel
import SyncWire

/// Checks, before a partition is ordered, that the log and the tables belong together.
struct OrderingStart<Log: ChangeLog, Store: RecordStore>: Sendable {
    let partition: Int
    let context: StageContext<Log>
    let store: Store

    private var log: Log { context.log }
    private var changes: TopicPartition { TopicPartition(.changes, partition) }
    private var ordered: TopicPartition { TopicPartition(.ordered, partition) }

    /// Fails for a position outside the log's range (I1), for results that `ordered` lost (I5), and for a schema version that
    /// is not known.
    ///
    /// - Returns: the position of the tables, which were moved where `ordered` was recreated, and from where results follow it.
    func checkedPosition(
        _ stored: StoredPosition?, state: PartitionState
    ) async throws -> (stored: StoredPosition?, results: ResultPosition) {
        // Read before that of `changes`, see `ResultPosition`.
        let range = try await log.range(of: ordered)
        let changesRange = try await log.range(of: changes)
        guard changesRange.start...changesRange.end ~= state.nextOffset else {
            throw OrderingError.positionOutOfRange(
                partition: partition, position: state.nextOffset, range: changesRange)
        }
        var position = stored
        if let offset = stored?.orderedOffset, offset > range.end {
            guard try await holdsNothingBefore(state.nextOffset, in: range) else {
                throw OrderingError.resultsLost(partition: partition, position: offset, range: range)
            }
            position = try await moveResults(stored, StoredPosition(state: state, orderedOffset: range.start))
        }
        // The tables cannot be read in a version that this process has not prepared them for, as when another worker was
        // ahead.
        if state.schemaOrdinal > 0, context.schemas.now[state.schemaOrdinal] == nil {
            throw OrderingError.paused(
                changes, offset: state.nextOffset, reason: .unknownSchemaNumber(state.schemaOrdinal))
        }
        let results = ResultPosition(
            stored: position?.orderedOffset ?? 0, end: range.end, changesEnd: changesRange.end)
        return (position, results)
    }

    /// A reader at the next record, after the one that the tables were brought to last.
    func reader(from state: PartitionState) async throws -> Log.Reader {
        let epoch = context.history.epoch
        let skipped = context.schemas.content.skipped
        let reader = try await log.reader(of: changes, from: state.nextOffset) { [partition] record in
            if skipped[.changes, partition, record.offset] != nil { return true }
            do {
                let part = try ChangePart(decoding: record.value)
                return part.epoch.utf8.elementsEqual(epoch.utf8) && state.hasSeen(part)
            } catch {
                // The tables are brought past a record that cannot be decoded only where it is left out.
                return false
            }
        }
        guard let reader else {
            throw OrderingError.otherRecords(partition: partition, position: state.nextOffset)
        }
        return reader
    }

    /// Whether `ordered` was recreated: it begins with the result of a record that the tables do not hold.
    ///
    /// Then nothing is missing between the two, and streams that had more are rebuilt from the tables.
    private func holdsNothingBefore(_ changesOffset: Int64, in range: LogRange) async throws -> Bool {
        if range.start == range.end { return true }
        guard let record = try await log.first(of: ordered, from: range.start) else { return false }
        do {
            return try OrderedPiece(decoding: record.value).changesOffset >= changesOffset
        } catch {
            // Not a result of this stage, so it proves nothing.
            return false
        }
    }

    /// Stores that everything in the recreated `ordered` comes after what the tables hold.
    private func moveResults(_ stored: StoredPosition?, _ moved: StoredPosition) async throws -> StoredPosition {
        try await store.commit([
            StoreStep(partition: partition, expected: stored, position: moved, rows: [], outcomes: [])
        ])
        context.logger.warning(
            "The topic ordered was recreated: resuming after the tables' position; streams will be rebuilt from the tables",
            [.partition: .integer(partition), .offset: .integer(Int(moved.orderedOffset))])
        return moved
    }
}
