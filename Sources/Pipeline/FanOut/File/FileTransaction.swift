import SQLite
import SyncModel

/// The state of a transaction on a stream file before its commit.
struct FileTransaction {
    /// The file's state after the transaction.
    var state: FileState
    /// The owners in the transaction.
    private(set) var owners: [SyncID: TouchedOwner] = [:]
    var rowCount = 0
    /// `uploads` progress before the transaction.
    private let uploadsBefore: [Int: UploadProgress]
    /// An owner's committed heads.
    private let committed: (SyncID) -> OwnerHeads?

    init(_ state: FileState, committed: @escaping (SyncID) -> OwnerHeads?) {
        self.state = state
        self.committed = committed
        uploadsBefore = state.position.uploads
    }

    /// The owner's number; assigns one to a new owner.
    mutating func number(of owner: SyncID) -> Int64 {
        if let touched = owners[owner] { return touched.heads.number }
        let touched: TouchedOwner
        if let heads = committed(owner) {
            touched = TouchedOwner(heads, isNew: false)
        } else {
            touched = TouchedOwner(OwnerHeads(number: state.nextOwner), isNew: true)
            state.nextOwner += 1
        }
        owners[owner] = touched
        return touched.heads.number
    }

    /// Advances the head of a device and its owner.
    ///
    /// - Returns: the number of the owner, and the device.
    mutating func move(_ device: KnowledgeID, of owner: SyncID, to timeStamp: TimeStamp) -> (
        owner: Int64, device: OwnerHeads.DeviceHead
    ) {
        let number = number(of: owner)
        rowCount += 1
        return (
            number,
            owners[owner, default: TouchedOwner(OwnerHeads(number: number), isNew: true)]
                .move(device, to: timeStamp, nextDevice: &state.nextDevice)
        )
    }

    /// Writes the heads and the position.
    ///
    /// - Returns: the checksum of the meta record.
    mutating func finish(in file: StreamFile) throws -> Int64? {
        for (owner, touched) in owners { try file.write(touched, of: owner, &state) }
        for (partition, progress) in state.position.uploads where uploadsBefore[partition] != progress {
            try file.writeUpload(partition, from: uploadsBefore[partition], to: progress, &state)
        }
        // A file that is being built has no meta record until it is complete.
        return file.metaChecksum == nil ? nil : try file.writeMeta(state)
    }

    /// The heads of the owners in the transaction.
    var heads: [SyncID: OwnerHeads] { owners.mapValues(\.heads) }
}

/// A decoded record of `ordered`.
struct OrderedRecord: Sendable {
    let offset: Int64
    /// Log timestamp, microseconds since 1970.
    let time: Int64
    let piece: OrderedPiece
}

/// The result of a transaction.
struct AppliedRecords: Sendable {
    /// The pieces that were not repeats, in order.
    let pieces: [OrderedPiece]
    let rowCount: Int
    /// The heads of the changed owners.
    let heads: [SyncID: OwnerHeads]
    /// The position after the transaction.
    let position: StreamPosition
    /// Why the records after those could not be applied.
    let fault: LogFault?
}

extension StreamFile {
    /// Applies records in one transaction: all of them, or those before the first fault.
    ///
    /// - Parameters:
    ///   - schemas: the known versions.
    ///   - committed: an owner's heads after the last commit.
    /// - Throws: ``StreamFailure``; then nothing was written.
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

    /// Returns false for a record that was applied before.
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

/// An owner in a transaction.
struct TouchedOwner: Sendable {
    /// The heads after the transaction.
    var heads: OwnerHeads
    /// Whether the owner is new to the file.
    let isNew: Bool
    /// The owner's head before the transaction.
    let oldHead: TimeStamp
    /// The changed devices as they were; `nil` for a new device.
    var moved: [KnowledgeID: OwnerHeads.DeviceHead?] = [:]

    init(_ heads: OwnerHeads, isNew: Bool) {
        self.heads = heads
        self.isNew = isNew
        oldHead = heads.head
    }

    /// Advances the head of a device.
    ///
    /// - Parameter nextDevice: the number for a new device.
    /// - Returns: the device afterwards.
    mutating func move(
        _ device: KnowledgeID, to timeStamp: TimeStamp, nextDevice: inout Int64
    ) -> OwnerHeads.DeviceHead {
        let known = heads[device]
        if moved.index(forKey: device) == nil { moved.updateValue(known, forKey: device) }
        let number = known?.number ?? nextDevice
        if known == nil { nextDevice += 1 }
        return heads.move(device, number: number, to: timeStamp)
    }
}
