import CZlib
import LoadTools

/// What the devices of one owner do at once to cost the server much and themselves little.
enum AbuseKind: String, Sendable, CaseIterable {
    /// Uploads of changes that are all conflicts with the same large row.
    case conflicts
    /// Uploads of a few bytes for each of many large rows, which are edited or deleted.
    case edits
    /// Uploads whose changes are all refused, in as many bytes or as few as possible.
    case refusals
    /// Pulls of full pages with gzip.
    case pages
    /// Pulls of full pages that are not read.
    case unread
    /// Pulls of one row of an owner whose rows many devices have created.
    case creators
    /// Bodies of the largest size whose end does not arrive.
    case unfinished
    /// Requests that are refused when they have arrived: wrong JSON at the end of a large body, a large body as little gzip,
    /// malformed headers.
    case garbage

    /// The number of connections of each kind: 200 in all.
    var connections: Int {
        switch self {
        case .conflicts, .refusals, .unfinished: 20
        case .edits, .garbage: 10
        case .pages: 80
        case .unread: 10
        case .creators: 30
        }
    }
}

/// What a connection repeats.
struct AbusePattern: Sendable {
    let kind: AbuseKind
    /// Sent one after the other.
    let requests: [[UInt8]]
    /// Bytes at the end of each request that are sent one by one, with a pause before each.
    var heldBack = 0
    var readsAnswers = true
}

/// The rows of an owner that are made for abuse, and the requests.
struct AbusiveOwner: Sendable {
    static let schema =
        Workload.schema + """
              file:
                columns:
                  label: { type: text, length: 200 }
                  content: text

            """

    /// Bytes of a large row: near the largest value that the server accepts by default.
    private static let rowSize = 200_000
    /// Large rows that one request edits.
    let rows: Int
    /// Devices that have created a row.
    let creators: Int
    /// Changes of a request that is refused; the most that the server accepts by default.
    let refusals: Int
    let name: String

    init(name: String, scale: Scale) {
        self.name = name
        rows = scale.pick(20, 300, 300)
        creators = scale.pick(300, 30_000, 30_000)
        refusals = scale.pick(100, 10_000, 10_000)
    }

    /// Changes of a request that are conflicts.
    private var conflicts: Int { min(400, refusals) }

    /// Uploads the rows, and waits until they can be pulled.
    func prepare(_ port: UInt16) throws {
        let connection = try LoadConnection(port: port)
        var uploads: [[UInt8]] = []
        for first in stride(from: 0, to: creators, by: refusals) {
            uploads.append(
                Self.changes(first..<min(creators, first + refusals)) {
                    #"{"table":"file","id":"c\#($0)","knowledgeId":"c\#($0)","values":{"label":"l"}}"#
                })
        }
        let content = Self.content
        for first in stride(from: 0, through: rows, by: 20) {
            uploads.append(
                Self.changes(first..<min(rows + 1, first + 20)) {
                    #"{"table":"file","id":"r\#($0)","values":{"label":"l","content":"\#(content)"}}"#
                })
        }
        // Each by a device of its own, which no limit of rates refuses.
        let devices = uploads.indices.map { Requests(owner: name, device: "p\($0)") }
        for (device, changes) in zip(devices, uploads) {
            try connection.exchange(device.upload(batch: 1, changes: changes), expecting: 202)
        }
        for device in devices { try Upload.waitForOutcome(device.pull(including: 1), on: connection) }
    }

    /// What the connections do.
    func patterns(_ kinds: [AbuseKind]) throws -> [AbusePattern] {
        try kinds.flatMap { kind in
            Array(repeating: try pattern(kind), count: kind.connections)
        }
    }

    private func pattern(_ kind: AbuseKind) throws -> AbusePattern {
        let device = Requests(owner: name, device: "k2")
        switch kind {
        case .conflicts:
            // The last row, which no other kind changes.
            let changes = Self.changes(0..<conflicts) { _ in
                #"{"table":"file","id":"r\#(rows)","values":{"label":"m"},"base":1,"ifBase":true}"#
            }
            return AbusePattern(kind: kind, requests: [device.upload(changes: changes, waitSeconds: 10)])
        case .edits:
            let edits = Self.changes(0..<rows) { #"{"table":"file","id":"r\#($0)","values":{"label":"m"}}"# }
            // As many as the limit of an atomic batch allows.
            let together = Self.changes(0..<min(rows, 20)) {
                #"{"table":"file","id":"r\#($0)","values":{"label":"n"}}"#
            }
            let deletes = Self.changes(0..<(rows / 3)) { #"{"table":"file","id":"r\#($0)","deleted":true}"# }
            return AbusePattern(
                kind: kind,
                requests: [
                    device.upload(changes: edits, waitSeconds: 10),
                    device.upload(changes: together, isAtomic: true, waitSeconds: 10), device.upload(changes: deletes),
                ])
        case .refusals:
            let long = String(repeating: "x", count: 250)
            let named = Self.changes(0..<refusals) { #"{"table":"t","id":"\#(long)\#($0)"}"# }
            return AbusePattern(
                kind: kind,
                requests: [
                    device.upload(changes: named), device.upload(changes: Self.changes(0..<refusals) { _ in "0" }),
                ])
        case .pages:
            return AbusePattern(
                kind: kind, requests: [device.pull(knowledge: Array("[]".utf8), limit: 10_000, acceptsGzip: true)])
        case .unread:
            return AbusePattern(
                kind: kind, requests: [device.pull(knowledge: Array("[]".utf8), limit: 10_000)], readsAnswers: false)
        case .creators:
            return AbusePattern(kind: kind, requests: [device.pull(knowledge: Array("[]".utf8), limit: 1)])
        case .unfinished:
            return AbusePattern(
                kind: kind, requests: [device.upload(changes: [UInt8](repeating: 0x20, count: 4_190_000))],
                heldBack: 1000)
        case .garbage:
            let wrong = device.upload(
                changes: [UInt8](repeating: 0x20, count: 1_000_000) + Array(#"{"table":nul}"#.utf8))
            let zeros = try Self.gzip([UInt8](repeating: 0x20, count: 4 << 20))
            return AbusePattern(
                kind: kind,
                requests: [
                    wrong, device.post("/v1/upload", zeros, headers: "Content-Encoding: gzip\r\n"),
                    Array("POST /v1/sync HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Sync-Id \u{1}:\r\n\r\n".utf8),
                ])
        }
    }

    private static func changes(_ numbers: Range<Int>, _ change: (Int) -> String) -> [UInt8] {
        Array(numbers.map(change).joined(separator: ",").utf8)
    }

    /// Words, which gzip reduces to about a third.
    private static var content: String {
        var rows = Workload.Rows(seed: 11)
        var text: [UInt8] = []
        while text.count < rowSize { text += rows.next().body + [UInt8(ascii: " ")] }
        return String(decoding: text[..<rowSize], as: UTF8.self)
    }

    private static func gzip(_ bytes: [UInt8]) throws(LoadFailure) -> [UInt8] {
        var stream = z_stream()
        guard CZlib_start_gzip(&stream, 9) == Z_OK else { throw LoadFailure("zlib has no memory") }
        defer { deflateEnd(&stream) }
        var output = [UInt8](repeating: 0, count: bytes.count / 100 + 4096)
        var input = bytes
        let isComplete = input.withUnsafeMutableBufferPointer { input in
            output.withUnsafeMutableBufferPointer { output in
                stream.next_in = input.baseAddress
                stream.avail_in = UInt32(input.count)
                stream.next_out = output.baseAddress
                stream.avail_out = UInt32(output.count)
                return deflate(&stream, Z_FINISH) == Z_STREAM_END
            }
        }
        guard isComplete else { throw LoadFailure("a body of spaces is not compressed to a hundredth") }
        return Array(output[..<Int(stream.total_out)])
    }
}
