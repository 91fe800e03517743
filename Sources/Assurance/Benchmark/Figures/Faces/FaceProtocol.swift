import LoadTools
import SyncModel

/// How the same work is asked for in each protocol, with the rows of ``Workload``.
enum FaceProtocol: String, Sendable, CaseIterable, CustomStringConvertible {
    /// The client contract, with which faces are compared.
    case v1
    case rest
    case tracker
    case sqliteNow = "sqlitenow"
    case crud

    var description: String { rawValue }

    /// Documents and records are uploaded one after the other; a CRUD client has no position: it always reads everything; a tracker
    /// asks for devices before rows.
    func does(_ work: FaceWorkKind) -> Bool {
        switch self {
        case .v1: true
        case .rest, .sqliteNow: work != .devices
        case .tracker: work != .upload100 && work != .idle
        case .crud: work != .upload100 && work != .idle && work != .devices
        }
    }

    // MARK: Uploads

    /// Writes a new row as an upload has it.
    func write(_ row: Workload.Row, number: Int, to bytes: inout [UInt8]) {
        switch self {
        case .v1: return Workload.write(row, to: &bytes)
        case .rest:
            bytes += #"{"id":""#.utf8
            bytes += row.id
            bytes += #"","#.utf8
            Workload.writeColumns(of: row, to: &bytes)
            bytes += #","Deleted":false}"#.utf8
        case .tracker:
            bytes.append(UInt8(ascii: "{"))
            Workload.writeColumns(of: row, to: &bytes)
            bytes += #","createdOn":"2026-05-01T08:00:00Z","updatedOn":"2026-05-01T08:00:00Z"}"#.utf8
        case .sqliteNow:
            bytes += #"{"sourceChangeId":\#(number),"schema":"business","table":"note","op":"INSERT","pk":""#.utf8
            bytes += row.id
            bytes += #"","serverVersion":0,"payload":{"id":""#.utf8
            bytes += row.id
            bytes += #"","#.utf8
            Workload.writeColumns(of: row, to: &bytes)
            bytes += "}}".utf8
        case .crud:
            bytes += #"{"id":""#.utf8
            bytes += row.id
            bytes += #"","#.utf8
            Workload.writeColumns(of: row, to: &bytes)
            bytes += #","updated_at":"2026-05-01T08:00:00Z","sync_status":"pendingCreate"}"#.utf8
        }
    }

    /// A request that is answered with the outcome.
    ///
    /// - Parameters:
    ///   - changes: as ``write(_:number:to:)`` makes them, with commas between them.
    ///   - seen: what the server has answered as ``position(in:)``.
    func upload(_ requests: Requests, batch: Int, _ changes: [UInt8], isOne: Bool, seen: Int) -> [UInt8] {
        switch self {
        case .v1: requests.upload(batch: batch, changes: changes, waitSeconds: 30)
        case .rest:
            requests.face("/rest/note", isOne ? changes : [UInt8(ascii: "[")] + changes + [UInt8(ascii: "]")])
        case .tracker: requests.face("/tracker/note", changes)
        case .sqliteNow:
            requests.face(
                "/sync/upload", Array(#"{"lastServerSeqSeen":\#(seen),"changes":["#.utf8) + changes + Array("]}".utf8))
        case .crud: requests.face("/api/note", changes)
        }
    }

    var uploadStatus: Int { self == .v1 || self == .sqliteNow ? 200 : 201 }

    /// How many changes were stored, by the answer to an upload.
    func stored(in body: ArraySlice<UInt8>) -> Int {
        switch self {
        case .v1, .sqliteNow: body.count(of: #""status":"applied""#)
        case .rest: body.count(of: #""Ts":"#)
        case .tracker: body.count(of: #""deleted":false"#)
        case .crud: body.count(of: #""sync_status":"synced""#)
        }
    }

    /// What a device sends with its next upload; `nil` where the answer does not have it.
    func position(in body: ArraySlice<UInt8>) -> Int? {
        guard self == .sqliteNow else { return nil }
        return body.lastRange(of: #""highestServerSeq":"#).map { body.number(from: $0.upperBound) }
    }

    // MARK: Downloads

    /// What a device sends that has downloaded everything up to a head.
    func preparation(_ requests: Requests, head: Int) -> [[UInt8]] {
        switch self {
        case .v1, .sqliteNow, .crud: []
        case .rest: [requests.face("/rest/note"), requests.face("/rest/note?ts=\(head)")]
        case .tracker:
            [
                requests.face("/tracker/devices"), requests.face("/tracker/note"),
                requests.face("/tracker/note?after=\(Self.time(head))"),
            ]
        }
    }

    /// A request for rows above a position, or as many where the protocol has none; all in one answer.
    func download(_ requests: Requests, above position: Int, limit: Int) -> [UInt8] {
        switch self {
        case .v1: requests.pull(above: position, limit: limit)
        case .rest: requests.face("/rest/note?ts=\(position)&limit=\(limit)")
        case .tracker: requests.face("/tracker/note?after=\(Self.time(position))")
        case .sqliteNow:
            requests.face("/sync/download?after=\(position)&limit=\(limit)&includeSelf=false&schema=business")
        case .crud: requests.face("/api/note")
        }
    }

    /// All rows: in one answer, where the protocol has none for more, and else a thousand at a time.
    ///
    /// - Parameter positions: below the first rows, and after each thousand.
    func everything(_ requests: Requests, above positions: [Int]) -> [[UInt8]] {
        switch self {
        case .v1, .sqliteNow:
            positions.map { download(requests, above: $0, limit: FaceHistory.page) }
        case .rest: [requests.face("/rest/note")]
        case .tracker: [requests.face("/tracker/devices"), requests.face("/tracker/note")]
        case .crud: [requests.face("/api/note")]
        }
    }

    /// Finds out which devices uploaded, and that nothing of theirs is new.
    func devices(_ requests: Requests, at head: Int) -> [[UInt8]] {
        self == .tracker
            ? [requests.face("/tracker/devices?after=\(Self.time(head))")]
            : [requests.face("/v1/devices"), download(requests, above: head, limit: 1000)]
    }

    /// How many rows an answer to a download has.
    func rows(in body: ArraySlice<UInt8>) -> Int {
        switch self {
        case .v1: PullAnswer.rows(in: body)
        case .rest: body.count(of: #""Ts":"#)
        case .tracker: body.count(of: #""updatedOn":"#)
        case .sqliteNow: body.count(of: #""serverVersion":"#)
        case .crud: body.count(of: #""sync_status":"#)
        }
    }

    private static func time(_ timeStamp: Int) -> String {
        var bytes: [UInt8] = []
        CanonicalTimestamp.append(Int64(timeStamp), to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }
}
