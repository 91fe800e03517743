import SQLite
import SyncModel

/// A record of `ordered`.
struct OrderedRecord: Sendable {
    /// Its offset.
    let offset: Int64
    /// When the log took it, in microseconds since 1970.
    let time: Int64
    /// What it holds.
    let piece: OrderedPiece
}

/// What a transaction came to.
struct AppliedRecords: Sendable {
    /// The pieces that were new, in order.
    let pieces: [OrderedPiece]
    /// How many rows they had.
    let rowCount: Int
    /// The heads of the owners that they touched.
    let heads: [SyncID: OwnerHeads]
    /// Where the stream stands now.
    let position: StreamPosition
    /// Why the records behind those could not be applied.
    let fault: LogFault?
}

extension StreamFile {
    /// Applies records that follow the file's position, in one transaction: all of them, or those before the first fault.
    ///
    /// - Parameters:
    ///   - schemas: the versions known.
    ///   - committed: an owner's heads as the last transaction left them.
    /// - Throws: ``StreamFailure``; nothing was written then.
    func apply(
        _ records: ArraySlice<OrderedRecord>, schemas: SchemaHistory, committed: @escaping (SyncID) -> OwnerHeads?,
        stoppedBy earlier: LogFault? = nil
    ) throws -> AppliedRecords {
        var transaction = FileTransaction(state, committed: committed)
        var applied: [OrderedPiece] = []
        var failed: (position: Int, fault: LogFault)?
        do {
            let checksum = try connection.transaction(.immediate) {
                try requireOwnMeta()
                for (position, record) in zip(records.indices, records) {
                    do {
                        if try apply(record, schemas, &transaction) { applied.append(record.piece) }
                    } catch let fault as LogFault {
                        failed = (position, fault)
                        throw fault
                    }
                }
                return try transaction.finish(in: self)
            }
            state = transaction.state
            metaChecksum = checksum
        } catch {
            guard let failed else { throw StreamFailure(cause: error) ?? error }
            return try apply(
                records[..<failed.position], schemas: schemas, committed: committed, stoppedBy: failed.fault)
        }
        return AppliedRecords(
            pieces: applied, rowCount: transaction.rowCount, heads: transaction.heads, position: state.position,
            fault: earlier)
    }

    /// Applies one record; false when it was applied before.
    private func apply(
        _ record: OrderedRecord, _ schemas: SchemaHistory, _ transaction: inout FileTransaction
    ) throws -> Bool {
        let piece = record.piece
        guard piece.epoch.utf8.elementsEqual(identity.epoch.utf8) else { throw LogFault.otherEpoch(piece.epoch) }
        transaction.state.position.nextOffset = record.offset + 1
        if transaction.state.position.hasApplied(piece.changesOffset, piece: piece.piece) { return false }
        try transaction.state.position.advance(over: piece)
        if !piece.rows.isEmpty {
            guard let schema = schemas[piece.schema] else { throw LogFault.unknownSchema(piece.schema) }
            let renderer = renderer(schema)
            for written in piece.rows {
                let row = written.row
                guard row.timeStamp > transaction.state.position.timeStamp else {
                    throw LogFault.invalidRecord(
                        "timeStamp \(row.timeStamp) follows \(transaction.state.position.timeStamp)")
                }
                try put(row, renderer, over: written.before, &transaction)
                transaction.state.position.timeStamp = row.timeStamp
            }
        }
        if let outcome = OutcomePiece(piece) { try keep(outcome, &transaction) }
        return true
    }
}
