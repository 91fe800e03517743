import SyncModel
import SyncWire
import Testing

/// Each violation of the contract has its code, its field and its offset.
@Suite struct MalformedTests {
    private static let batch = Builder().varint(1, 1).text(4, Sample.hash).text(5, "abc").text(6, "k1").text(10, "[]")

    private static let cases: [(name: String, bytes: Builder, code: WireError.Code, path: [Int])] = [
        ("nothing", Builder(), .missing, [1]),
        ("format zero", Builder().varint(1, 0), .missing, [1]),
        ("no schema", Builder().varint(1, 1).text(5, "abc").text(6, "k1").text(10, "[]"), .missing, [4]),
        ("no caller", Builder().varint(1, 1).text(4, Sample.hash).text(6, "k1").text(10, "[]"), .missing, [5]),
        ("no device", Builder().varint(1, 1).text(4, Sample.hash).text(5, "abc").text(10, "[]"), .missing, [6]),
        ("no changes", Builder().varint(1, 1).text(4, Sample.hash).text(5, "abc").text(6, "k1"), .missing, [10]),
        ("a later format", batch.varint(1, 2), .unsupportedFormat(2), [1]),
        ("a tag without value", batch.tag(7, 0), .truncated, [7]),
        ("half a tag", batch.raw([0x80]), .truncated, []),
        ("a length behind the end", batch.tag(10, 2).number(5).raw([1, 2, 3, 4]), .truncated, [10]),
        ("a length of 2^64-1", batch.tag(10, 2).number(.max), .truncated, [10]),
        ("an unknown length behind the end", batch.tag(99, 2).number(1 << 62), .truncated, [99]),
        ("half a fixed64", batch.tag(99, 1).raw([1, 2, 3]), .truncated, [99]),
        ("half a fixed32", batch.tag(99, 5).raw([1, 2, 3]), .truncated, [99]),
        ("65 bits", batch.tag(7, 0).raw([UInt8](repeating: 0xFF, count: 9) + [0x02]), .varintOverflow, [7]),
        ("an endless varint", batch.tag(7, 0).raw([UInt8](repeating: 0x80, count: 30)), .varintOverflow, [7]),
        ("field 0", batch.varint(0, 1), .invalidTag, []),
        ("field 2^29", batch.varint(1 << 29, 1), .invalidTag, []),
        ("wire type 6", batch.tag(99, 6), .invalidTag, [99]),
        ("wire type 7", batch.tag(99, 7), .invalidTag, [99]),
        ("a group", batch.tag(99, 3).tag(99, 4), .group, [99]),
        ("the end of a group", batch.tag(2, 4), .group, [2]),
        ("a number as text", batch.text(7, "1"), .wrongWireType, [7]),
        ("text as a number", batch.varint(5, 1), .wrongWireType, [5]),
        ("a message as a number", batch.varint(9, 1), .wrongWireType, [9]),
        ("a flag as fixed32", batch.tag(8, 5).raw([1, 0, 0, 0]), .wrongWireType, [8]),
        ("text that is not UTF-8", batch.blob(2, [0xFF]), .invalidUTF8, [2]),
        ("an id that is not UTF-8", batch.blob(5, [0x61, 0xED, 0xA0, 0x80]), .invalidUTF8, [5]),
        ("an epoch of 256 bytes", batch.text(2, String(repeating: "e", count: 256)), .tooLong, [2]),
        ("an empty id", batch.text(5, ""), .invalidID, [5]),
        ("an id of 256 bytes", batch.text(5, String(repeating: "e", count: 256)), .invalidID, [5]),
        ("an id with NUL", batch.text(5, "a\u{0}b"), .invalidID, [5]),
        ("a device *", batch.text(6, "*"), .invalidID, [6]),
        ("batch 0", batch.varint(7, 0), .outOfRange, [7]),
        ("batch 2^63", batch.varint(7, 1 << 63), .outOfRange, [7]),
        ("rules 2^31", batch.varint(3, 1 << 31), .outOfRange, [3]),
        ("a short schema hash", batch.text(4, "0123"), .invalidForm, [4]),
        ("a schema hash in capitals", batch.text(4, String(repeating: "A", count: 32)), .invalidForm, [4]),
        ("a grant without owner", batch.message(9) { $0.varint(2, 1) }, .missing, [9, 1]),
        ("a grant without access", batch.message(9) { $0.text(1, "x") }, .missing, [9, 2]),
        ("access 0", batch.message(9) { $0.text(1, "x").varint(2, 0) }, .unknownValue, [9, 2]),
        ("access 3", batch.message(9) { $0.text(1, "x").varint(2, 3) }, .unknownValue, [9, 2]),
        (
            "a field that leaves its message",
            batch.message(9) { $0.varint(2, 1).tag(1, 2).number(3).raw([0x61]) }.raw([0x61, 0x61]), .truncated, [9, 1]
        ),
    ]

    @Test(arguments: cases.indices)
    func aMalformedBatchIsReportedWithItsPosition(index: Int) {
        let (name, bytes, code, path) = Self.cases[index]
        let error = #expect(throws: WireError.self, "\(name)") { try ChangeBatch(decoding: bytes.bytes) }
        #expect(error?.code == code, "\(name)")
        #expect(error?.path == path, "\(name)")
        #expect((0...bytes.bytes.count).contains(error?.offset ?? -1), "\(name)")
    }

    private static let part = Sample.part.encode(naming: Sample.schema)
    private static let piece = Sample.piece.encode(naming: Sample.schema)

    private static let innerCases: [(name: String, more: Builder, code: WireError.Code, path: [Int])] = [
        ("a change without id", Builder().message(15) { $0.varint(1, 1) }, .missing, [15, 3]),
        ("base 2^53", Builder().message(15) { $0.text(3, "r").varint(7, 1 << 53) }, .outOfRange, [15, 7]),
        ("a negative base", Builder().message(15) { $0.text(3, "r").varint(7, .max) }, .outOfRange, [15, 7]),
        ("a creator *", Builder().message(15) { $0.text(3, "r").text(4, "*") }, .invalidID, [15, 4]),
        ("another field in values", Builder().message(15) { $0.blob(6, [0x12, 0]) }, .invalidValues, [15, 6]),
        ("values that end early", Builder().message(15) { $0.blob(6, [0x0A, 5, 1]) }, .invalidValues, [15, 6]),
        ("values twice", Builder().message(15) { $0.blob(6, []).blob(6, []) }, .repeated, [15, 6]),
        ("table 2^31", Builder().message(15) { $0.varint(2, 1 << 31) }, .outOfRange, [15, 2]),
        (
            "a changeId of 15 bytes",
            Builder().message(15) { $0.text(3, "r").blob(11, [UInt8](repeating: 0, count: 15)) }, .invalidForm,
            [15, 11]
        ),
        (
            "a changeId without content",
            Builder().message(15) { $0.text(3, "r").blob(11, [UInt8](repeating: 0, count: 16)) }, .missing, [15, 12]
        ),
        (
            "content without a changeId",
            Builder().message(15) { $0.text(3, "r").blob(12, [UInt8](repeating: 0, count: 16)) }, .missing, [15, 11]
        ),
        ("a quota of 2^40 + 1 rows", Builder().varint(22, (1 << 40) + 1), .outOfRange, [22]),
        ("a quota of 2^50 + 1 bytes", Builder().varint(23, (1 << 50) + 1), .outOfRange, [23]),
        ("a second summary", Builder().message(19) { $0 }, .repeated, [19]),
        ("another owner *", Builder().text(9, ""), .invalidID, [9]),
        ("a hash of 31 bytes", Builder().blob(13, [UInt8](repeating: 0, count: 31)), .invalidForm, [13]),
        ("no hash", Builder().blob(13, []), .invalidForm, [13]),
        ("rules 0", Builder().varint(3, 0), .outOfRange, [3]),
        ("an empty epoch", Builder().text(2, ""), .missing, [2]),
        ("an upload offset of 2^63", Builder().varint(6, 1 << 63), .outOfRange, [6]),
        ("table names as a number", Builder().varint(18, 1), .wrongWireType, [18]),
    ]

    @Test(arguments: innerCases.indices)
    func aMalformedPartIsReportedWithItsPosition(index: Int) {
        let (name, more, code, path) = Self.innerCases[index]
        let error = #expect(throws: WireError.self, "\(name)") { try ChangePart(decoding: Self.part + more.bytes) }
        #expect(error?.code == code, "\(name)")
        #expect(error?.path == path, "\(name)")
    }

    private static let pieceCases: [(name: String, more: Builder, code: WireError.Code, path: [Int])] = [
        ("a row without timeStamp", Builder().message(15) { $0.text(2, "r").varint(5, 1) }, .missing, [15, 4]),
        ("a row without version", Builder().message(15) { $0.text(2, "r").varint(4, 1) }, .missing, [15, 5]),
        ("a row without id", Builder().message(15) { $0.varint(4, 1).varint(5, 1) }, .missing, [15, 2]),
        (
            "a row before its older state",
            Builder().message(15) { $0.text(2, "r").varint(4, 7).varint(5, 2).varint(12, 7) },
            .outOfRange, [15, 12]
        ),
        (
            "a made row of another time",
            Builder().message(15) { $0.text(2, "r").varint(4, 7).varint(5, 1).varint(7, 8) },
            .outOfRange, [15, 12]
        ),
        (
            "an older state of a new row",
            Builder().message(15) { $0.text(2, "r").varint(4, 7).varint(5, 1).varint(12, 6) },
            .outOfRange, [15, 12]
        ),
        ("a result without status", Builder().message(20) { $0.text(3, "r") }, .missing, [20, 4]),
        ("status 5", Builder().message(20) { $0.text(3, "r").varint(4, 5) }, .unknownValue, [20, 4]),
        ("a refusal without code", Builder().message(20) { $0.text(3, "r").varint(4, 4) }, .missing, [20, 9]),
        ("refusal code 14", Builder().message(20) { $0.varint(9, 14) }, .unknownValue, [20, 9]),
        ("verdict 6", Builder().varint(17, 6), .unknownValue, [17]),
        ("a hash of 33 bytes", Builder().blob(18, [UInt8](repeating: 0, count: 33)), .invalidForm, [18]),
        ("a second summary", Builder().message(21) { $0 }, .repeated, [21]),
        ("timeStamp 2^53", Builder().varint(11, 1 << 53), .outOfRange, [11]),
    ]

    @Test(arguments: pieceCases.indices)
    func aMalformedPieceIsReportedWithItsPosition(index: Int) {
        let (name, more, code, path) = Self.pieceCases[index]
        let error = #expect(throws: WireError.self, "\(name)") { try OrderedPiece(decoding: Self.piece + more.bytes) }
        #expect(error?.code == code, "\(name)")
        #expect(error?.path == path, "\(name)")
    }

    @Test func aLocatorWithoutADeviceIsMalformed() {
        let bytes = Builder().varint(1, 1).varint(2, 1).message(5) { $0.text(3, "r").varint(4, 3).varint(5, 9) }.bytes
        let error = #expect(throws: WireError.self) { try Outcome(decoding: bytes) }
        #expect(error?.code == .missing && error?.path == [5, 7])
    }

    @Test func anErrorNamesItsOffsetInTheRecord() {
        let bytes = Self.batch.message(9) { $0.text(1, "x").varint(2, 3) }.bytes
        let error = #expect(throws: WireError.self) { try ChangeBatch(decoding: bytes) }
        #expect(error?.offset == bytes.count)
        #expect(error?.description == "unknownValue in field 9.2 at byte \(bytes.count)")
    }

    @Test func aNewerFormatIsNotReportedAsMalformed() {
        // Other fields may have another meaning in it: here they have other types, and one is missing.
        let bytes = Builder().text(3, "x").varint(4, 1).varint(1, 2).bytes
        let error = #expect(throws: WireError.self) { try ChangePart(decoding: bytes) }
        #expect(error?.code == .unsupportedFormat(2))
        #expect(error?.isNewerFormat == true)
        let malformed = #expect(throws: WireError.self) { try ChangePart(decoding: Builder().varint(1, 1).bytes) }
        #expect(malformed?.isNewerFormat == false)
    }

    @Test func enforcesLimits() throws {
        let bytes = Self.part
        let fieldCount = 20 + 4 * 10 + 3 + 9 * 4
        #expect(try ChangePart(decoding: bytes, limits: limits(bytes: bytes.count, fields: fieldCount)) == Sample.part)
        expect(.messageTooLarge, bytes, limits(bytes: bytes.count - 1))
        expect(.tooManyFields, bytes, limits(fields: 20))
        expect(.tooDeep, bytes, limits(depth: 1))
        #expect(try ChangePart(decoding: bytes, limits: limits(depth: 2)) == Sample.part)
        #expect(throws: WireError.self) { try Nested(decoding: Nested.bytes(depth: 9)) }
        #expect(try Nested(decoding: Nested.bytes(depth: 8)).depth == 8)
    }

    private func limits(bytes: Int = 1 << 20, fields: Int = 1 << 20, depth: Int = 8) -> WireLimits {
        WireLimits(byteCount: bytes, fieldCount: fields, depth: depth)
    }

    private func expect(_ code: WireError.Code, _ bytes: [UInt8], _ limits: WireLimits) {
        let error = #expect(throws: WireError.self) { try ChangePart(decoding: bytes, limits: limits) }
        #expect(error?.code == code)
    }
}

/// A message that may hold itself in field 1.
private struct Nested: WireDecodable {
    var depth = 0

    init(from reader: inout WireReader) throws(WireError) {
        while let field = try reader.next() {
            depth = 1 + (try reader.message(field) { (inner) throws(WireError) in try Nested(from: &inner).depth })
        }
    }

    static func bytes(depth: Int) -> [UInt8] {
        (0..<depth).reduce(into: [UInt8]()) { bytes, _ in bytes = Builder().blob(1, bytes).bytes }
    }
}
