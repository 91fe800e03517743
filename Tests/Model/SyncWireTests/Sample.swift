import Foundation
import SyncModel
import SyncWire

/// A value with its message in protobuf's JSON format, written by hand.
struct Sample: Sendable, CustomStringConvertible {
    let name: String
    /// The message in the contract.
    let message: String
    /// What Swift writes.
    let bytes: [UInt8]
    let json: String
    /// Whether bytes give the sample's value.
    let matches: @Sendable ([UInt8]) throws -> Bool
    /// Whether the decoded value is the same after encoding and decoding it again.
    let survives: @Sendable ([UInt8]) throws -> Bool

    var description: String { name }

    init<Value: WireDecodable & WireEncodable & Equatable & Sendable>(
        _ name: String, _ message: String, _ value: Value, json: String
    ) {
        self.init(name, message, value, bytes: value.encode(), json: json) { bytes in
            let read = try Value(decoding: bytes)
            return try Value(decoding: read.encode()) == read
        }
    }

    init<Value: WireDecodable & Equatable & Sendable>(
        _ name: String, _ message: String, _ value: Value, bytes: [UInt8], json: String,
        survives: @escaping @Sendable ([UInt8]) throws -> Bool = { try Value(decoding: $0) == Value(decoding: $0) }
    ) {
        self.name = name
        self.message = message
        self.bytes = bytes
        self.json = json
        self.survives = survives
        matches = { try Value(decoding: $0) == value }
    }

    /// All samples: every message, its least and its greatest values.
    static let all = uploads + changes + ordered + deadLetters + control + storage

    // Parts that samples share.

    static let hash = String(repeating: "0123456789abcdef", count: 2)
    static let epoch = "h3ZqAbCdEfGhIjKlMnOpQr"
    static let contentHash = [UInt8](0..<32)
    static let device = Device(caller: SyncID(unchecked: "abc"), knowledgeID: KnowledgeID(unchecked: "k1"))
    static let other = KnowledgeID(unchecked: "k\u{E9}2")
    /// The largest id, of two-byte characters but one.
    static let longest = String(repeating: "\u{E9}", count: 127) + "x"

    static let schema = Schema(tables: [
        Table(name: "person", columns: [Column(name: "name", type: .text), Column(name: "age", type: .integer)]),
        Table(name: "note", policy: .checkBase, columns: [Column(name: "body", type: .json)]),
    ])

    static func base64(_ text: String) -> String { base64(Array(text.utf8)) }
    static func base64(_ bytes: [UInt8]) -> String { Data(bytes).base64EncodedString() }

    /// Values of columns; `nil` is a column not written.
    static func values(_ columns: String?...) -> RowValues {
        var values = RowValues()
        for column in columns {
            if let column { values.append(Array(column.utf8)) } else { values.appendAbsent() }
        }
        return values
    }
}
