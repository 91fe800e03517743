import SQLite
import SyncModel
import SyncWire

/// A record of the table outcomes: one piece of a kept outcome.
struct OutcomeRecord {
    let device: Int64
    let slot: Int64
    let piece: Int64
    let batch: Int64
    let isLast: Bool
    /// The record and part of `uploads`; `nil` for an outcome that came from the tables.
    let source: (upload: UploadReference, part: Int)?
    /// The piece as `Outcome` encodes it.
    let bytes: [UInt8]

    /// The columns before the checksum; no upload is -1.
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

    /// Reads the columns `dev_no, slot, piece, batch, is_last, upload_partition, upload_offset, upload_part, checksum, bytes`.
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
        guard try row.integer(at: 8) == checksum else { throw StreamFailure.damaged("a kept outcome is damaged") }
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

    /// Finds an uploading device of an owner.
    static let deviceQuery: StaticString =
        "SELECT dev_no, count, checksum FROM devices WHERE owner_no = ?1 AND caller = ?2 AND knowledge_id = ?3"

    /// Runs ``deviceQuery``.
    ///
    /// - Returns: the device's number, and how many outcomes it had so far.
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

/// An outcome that a file keeps, put together from its pieces.
struct KeptOutcome: Sendable {
    /// What became of the part.
    private(set) var outcome: Outcome
    /// The record and part of `uploads` that was first; `nil` where the file does not know.
    let source: (upload: UploadReference, part: Int)?

    /// Joins the pieces of one outcome, in order; `nil` unless all are there.
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
