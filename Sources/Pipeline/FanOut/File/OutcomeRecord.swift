import RecordStore
import SQLite
import SyncModel
import SyncWire

/// A record of the table `outcomes`: one piece of a stored outcome.
struct OutcomeRecord {
    let device: Int64
    let slot: Int64
    let piece: Int64
    let batch: Int64
    let isLast: Bool
    /// The record and part of `uploads`; `nil` for an outcome from the tables.
    let source: (upload: UploadReference, part: Int)?
    /// Encoded by `Outcome`.
    let bytes: [UInt8]

    /// The columns before the checksum; -1 without an upload.
    var numbers: [Int64] {
        [
            device, slot, piece, batch, isLast ? 1 : 0, Int64(source?.upload.partition ?? -1),
            source?.upload.offset ?? -1, Int64(source?.part ?? -1),
        ]
    }

    var checksum: Int64 {
        var checksum = Checksum(.outcome)
        for number in numbers { checksum.add(number) }
        checksum.add(bytes: bytes.span.bytes)
        return checksum.value
    }

    /// Reads the columns `dev_no, slot, piece, batch, is_last, upload_partition, upload_offset, upload_part, checksum,
    /// bytes`.
    init(_ row: borrowing Statement) throws {
        device = try row.integer(at: 0)
        slot = try row.integer(at: 1)
        piece = try row.integer(at: 2)
        batch = try row.integer(at: 3)
        isLast = try row.integer(at: 4) == 1
        let partition = Int(try row.integer(at: 5))
        let upload = UploadReference(partition: partition, offset: try row.integer(at: 6))
        let part = Int(try row.integer(at: 7))
        source = partition < 0 ? nil : (upload, part)
        bytes = try row.bytes(at: 9)
        guard try row.integer(at: 8) == checksum else { throw StreamFailure.damaged("a stored outcome is damaged") }
    }

    init(
        device: Int64, slot: Int64, piece: Int64, batch: Int64, isLast: Bool,
        source: (upload: UploadReference, part: Int)?, bytes: [UInt8]
    ) {
        self.device = device
        self.slot = slot
        self.piece = piece
        self.batch = batch
        self.isLast = isLast
        self.source = source
        self.bytes = bytes
    }

    // MARK: Devices

    /// Finds an uploading device with an owner.
    static let deviceQuery: StaticString =
        "SELECT dev_no, count, checksum FROM devices WHERE owner_no = ?1 AND caller = ?2 AND knowledge_id = ?3"

    /// Runs ``deviceQuery``.
    ///
    /// - Returns: the device's number and the number of its outcomes so far.
    static func device(_ device: Device, owner: Int64, _ query: inout Statement) throws -> (Int64, Int64)? {
        try query.bind(integer: owner, at: 1)
        try query.bind(id: device.caller, at: 2)
        try query.bind(id: device.knowledgeID, at: 3)
        guard try query.step() else { return nil }
        let (number, count) = (try query.integer(at: 0), try query.integer(at: 1))
        guard try query.integer(at: 2) == checksum(ofDevice: number, owner, count, device) else {
            throw StreamFailure.damaged("the record of uploading device \(number) is damaged")
        }
        return (number, count)
    }

    static func checksum(ofDevice number: Int64, _ owner: Int64, _ count: Int64, _ device: Device) -> Int64 {
        var checksum = Checksum(.device, number, owner, count)
        checksum.add(text: device.caller.text)
        checksum.add(text: device.knowledgeID.text)
        return checksum.value
    }
}

/// A stored outcome, joined from its pieces.
struct KeptOutcome: Sendable {
    /// The outcome, joined from all pieces.
    private(set) var outcome: Outcome
    /// The record and part of `uploads`; `nil` for an outcome from the tables.
    let source: (upload: UploadReference, part: Int)?

    /// Joins the pieces of one outcome, in order; `nil` when some are missing.
    init?(joining records: [OutcomeRecord]) throws(WireError) {
        guard let first = records.first, records.last?.isLast == true,
            records.enumerated().allSatisfy({ $1.piece == Int64($0) })
        else { return nil }
        source = first.source
        outcome = try Outcome(decoding: first.bytes)
        for record in records.dropFirst() {
            let piece = try Outcome(decoding: record.bytes)
            outcome.results += piece.results
            outcome.summary?.refusals += piece.summary?.refusals ?? []
        }
    }
}

/// A piece of an outcome to store.
struct OutcomePiece {
    let key: DeviceKey
    /// The results of this piece.
    let outcome: Outcome
    /// From 0.
    let number: Int
    let isLast: Bool
    /// The record and part of `uploads`; `nil` for an outcome from the tables.
    let source: (upload: UploadReference, part: Int)?

    /// The outcome in a piece of a result; `nil` for a batch that has no number or was not ordered.
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

    /// A whole outcome from the tables.
    init(_ stored: StoredOutcome) {
        key = stored.key
        outcome = stored.outcome
        number = 0
        isLast = true
        source = nil
    }
}

extension StreamFile {
    /// Stores a piece of a device's newest outcome.
    ///
    /// The first piece replaces the outcome 16 before it.
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

    /// Finds or inserts a device, and increments its number of outcomes.
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
