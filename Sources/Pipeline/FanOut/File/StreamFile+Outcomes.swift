import RecordStore
import SQLite
import SyncModel
import SyncWire

/// A piece of an outcome to keep.
struct OutcomePiece {
    /// Whose.
    let key: DeviceKey
    /// The part of the outcome that the piece has.
    let outcome: Outcome
    /// Its number, from 0.
    let number: Int
    /// Whether it is the last.
    let isLast: Bool
    /// The record and part of `uploads` that it came from; `nil` for one that the tables kept.
    let source: (upload: UploadReference, part: Int)?

    /// What an ordered batch came to, as far as a piece tells; `nil` for a batch without a number, or that was not ordered.
    init?(_ piece: OrderedPiece) {
        guard let batch = piece.batch, piece.verdict == .ordered else { return nil }
        key = DeviceKey(owner: piece.owner, device: piece.device)
        outcome = Outcome(
            batch: batch, contentHash: piece.contentHash, timeStamp: piece.timeStamp, results: piece.results,
            summary: piece.summary)
        number = piece.piece
        isLast = piece.isLast
        source = (piece.upload, piece.uploadPart)
    }

    /// An outcome that the tables kept, whole.
    init(_ stored: StoredOutcome) {
        key = stored.key
        outcome = stored.outcome
        number = 0
        isLast = true
        source = nil
    }
}

extension StreamFile {
    /// Keeps a piece of a device's newest outcome; its first piece takes the place of the outcome 16 before it.
    func keep(_ piece: OutcomePiece, _ transaction: inout FileTransaction) throws {
        let owner = transaction.number(of: piece.key.owner)
        let isFirst = piece.number == 0
        let uploader = try count(piece.key.device, owner: owner, isNew: isFirst, &transaction.state)
        let slot = (uploader.count - 1) % Int64(Outcome.keptPerDevice)
        if isFirst { try clear(slot, of: uploader.number, &transaction.state) }
        let record = OutcomeRecord(
            device: uploader.number, slot: slot, piece: Int64(piece.number), batch: piece.outcome.batch,
            isLast: piece.isLast, source: piece.source, bytes: piece.outcome.encode())
        transaction.state.add(record.checksum)
        try insert(record)
    }

    private func insert(_ record: OutcomeRecord) throws {
        var statement = try connection.statement(
            """
            INSERT INTO outcomes(dev_no, slot, piece, batch, is_last, upload_partition, upload_offset, upload_part, \
            checksum, bytes) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
            """)
        for (index, number) in record.numbers.enumerated() { try statement.bind(integer: number, at: index + 1) }
        try statement.bind(integer: record.checksum, at: 9)
        try statement.run(borrowingBlob: record.bytes.span.bytes, at: 10)
    }

    /// Finds a device, or makes it, and counts a new outcome.
    private func count(
        _ device: Device, owner: Int64, isNew: Bool, _ state: inout FileState
    ) throws -> (number: Int64, count: Int64) {
        let known = try uploader(device, owner: owner)
        if let known, !isNew { return known }
        let (number, before) = known ?? (state.nextUploader, 0)
        if known == nil {
            state.nextUploader += 1
        } else {
            state.remove(OutcomeRecord.checksum(ofDevice: number, owner, before, device))
        }
        let count = before + 1
        let checksum = OutcomeRecord.checksum(ofDevice: number, owner, count, device)
        state.add(checksum)
        var statement = try connection.statement(
            """
            INSERT INTO devices(dev_no, owner_no, count, checksum, caller, knowledge_id) VALUES(?1, ?2, ?3, ?4, ?5, ?6) \
            ON CONFLICT(dev_no) DO UPDATE SET count = ?3, checksum = ?4
            """)
        try statement.bind(integer: number, at: 1)
        try statement.bind(integer: owner, at: 2)
        try statement.bind(integer: count, at: 3)
        try statement.bind(integer: checksum, at: 4)
        try statement.bind(id: device.caller, at: 5)
        try statement.bind(id: device.knowledgeID, at: 6)
        try statement.run()
        return (number, count)
    }

    private func uploader(_ device: Device, owner: Int64) throws -> (Int64, Int64)? {
        var statement = try connection.statement(OutcomeRecord.deviceQuery)
        return try OutcomeRecord.device(device, owner: owner, &statement)
    }

    private func clear(_ slot: Int64, of device: Int64, _ state: inout FileState) throws {
        var statement = try connection.statement(
            "DELETE FROM outcomes WHERE dev_no = ?1 AND slot = ?2 RETURNING checksum")
        try statement.bind(integer: device, at: 1)
        try statement.bind(integer: slot, at: 2)
        while try statement.step() { state.remove(try statement.integer(at: 0)) }
    }
}
