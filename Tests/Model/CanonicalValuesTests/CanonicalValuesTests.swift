import CanonicalValues
import Fuzzing
import Seeded
import SyncModel
import Testing

/// What a column holds, kept beyond the closure.
enum Kept: Equatable {
    case null
    case integer(Int64)
    case real(UInt64)
    case text([UInt8])
    case bytes([UInt8])
}

struct CanonicalValuesTests {
    private var reader = CanonicalValueReader()
    private var writer = CanonicalValueWriter()

    private mutating func read(_ json: [UInt8], as type: ColumnType) throws -> Kept {
        try json.withUnsafeBufferPointer { buffer in
            try reader.read(buffer, as: type) { value in
                switch value {
                case .null: .null
                case .integer(let integer): .integer(integer)
                case .real(let real): .real(real.bitPattern)
                case .text(let text): .text(text.withUnsafeBufferPointer(Array.init))
                case .bytes(let bytes): .bytes(bytes.withUnsafeBufferPointer(Array.init))
                }
            }
        }
    }

    private mutating func read(_ json: String, as type: ColumnType) throws -> Kept {
        try read(Array(json.utf8), as: type)
    }

    private mutating func json(_ value: Kept, as type: ColumnType) throws -> [UInt8] {
        switch value {
        case .null: writer.writeNull()
        case .integer(let integer):
            if type == .boolean { writer.write(boolean: integer != 0) } else { writer.write(integer: integer) }
        case .real(let bits): try writer.write(real: Double(bitPattern: bits))
        case .text(let text): writer.write(text: text.span, as: type)
        case .bytes(let bytes): writer.write(bytes: bytes.span)
        }
        return writer.json
    }

    @Test(arguments: [
        ("0", 0), ("-1", -1), ("9007199254740991", 9_007_199_254_740_991),
        ("-9007199254740991", -9_007_199_254_740_991),
        ("\"9007199254740992\"", 9_007_199_254_740_992), ("\"-9223372036854775808\"", Int64.min),
        ("\"9223372036854775807\"", Int64.max),
    ])
    mutating func integersAreNumbersUpTo53BitsAndStringsBeyond(json: String, value: Int64) throws {
        #expect(try read(json, as: .integer) == .integer(value))
        #expect(try self.json(.integer(value), as: .integer) == Array(json.utf8))
    }

    @Test(arguments: ["", "-", "x", "1.5", "1e3", "\"9223372036854775808\"", "\"-9223372036854775809\"", "\"\"", "+1"])
    mutating func refusesWhatIsNoIntegerOf64Bits(json: String) {
        #expect(throws: CanonicalValueError(type: "integer")) { try read(json, as: .integer) }
    }

    @Test(arguments: [
        ("\"\"", ""), ("\"a\"", "a"), (#""\"\\\b\f\n\r\t""#, "\"\\\u{8}\u{C}\n\r\t"),
        (#""\u0001\u001f""#, "\u{1}\u{1F}"), ("\"/\u{7F}é\u{1F600}\"", "/\u{7F}é\u{1F600}"),
        ("\"e\u{301}\"", "e\u{301}"),
    ])
    mutating func textsLoseAndRegainTheirEscapes(json: String, text: String) throws {
        #expect(try read(json, as: .text) == .text(Array(text.utf8)))
        #expect(try self.json(.text(Array(text.utf8)), as: .text) == Array(json.utf8))
    }

    @Test(arguments: ["\"", "a", "\"a", #""\""#, #""\x""#, #""\u0041""#, #""\u001""#, #""\u001F""#, "1"])
    mutating func refusesWhatIsNoCanonicalString(json: String) {
        #expect(throws: CanonicalValueError(type: "text")) { try read(json, as: .text) }
    }

    @Test(arguments: [ColumnType.text, .integer, .real, .boolean, .uuid, .timestamp, .date, .bytes, .json])
    mutating func nullIsNoValueWhateverTheType(type: ColumnType) throws {
        #expect(try read("null", as: type) == .null)
        #expect(try json(.null, as: type) == Array("null".utf8))
    }

    @Test mutating func booleansAreZeroAndOne() throws {
        #expect(try read("true", as: .boolean) == .integer(1))
        #expect(try read("false", as: .boolean) == .integer(0))
        #expect(throws: CanonicalValueError(type: "boolean")) { try read("1", as: .boolean) }
    }

    @Test mutating func bytesAreDecodedBase64() throws {
        #expect(try read("\"AP8Q\"", as: .bytes) == .bytes([0, 255, 16]))
        #expect(try read("\"\"", as: .bytes) == .bytes([]))
        #expect(throws: CanonicalValueError(type: "bytes")) { try read("\"AP8\"", as: .bytes) }
    }

    @Test(arguments: ["{\"a\":[1,\"\\n\"]}", "\"null\"", "[]", "1.50"])
    mutating func jsonStaysAsItIs(json: String) throws {
        #expect(try read(json, as: .json) == .text(Array(json.utf8)))
        #expect(try self.json(.text(Array(json.utf8)), as: .json) == Array(json.utf8))
    }

    @Test mutating func realsThatJSONCannotSpellAreRefused() {
        for real in [Double.infinity, -.infinity, .nan] {
            #expect(throws: CanonicalValueError(type: "real")) { try writer.write(real: real) }
        }
        #expect(throws: CanonicalValueError(type: "real")) { try read("1e999", as: .real) }
    }

    @Test mutating func realsKeepEveryBit() throws {
        var random = SeededRandom(seed: 0xB175)
        let edges = [
            0, .leastNonzeroMagnitude, -.leastNonzeroMagnitude, .leastNormalMagnitude, .greatestFiniteMagnitude, 0x1p53,
            1e21, 1e-7,
        ]
        for real in edges
            + (0..<TestLength.count(20_000, long: 200_000)).map({ _ in Double(bitPattern: random.next()) })
        where real.isFinite {
            let json = try json(.real(real.bitPattern), as: .real)
            #expect(try read(json, as: .real) == .real(real.bitPattern), "\(real)")
        }
    }

    @Test mutating func everyCanonicalValueComesBackAsTheSameBytes() throws {
        var random = SeededRandom(seed: 0x5EED)
        for _ in 0..<TestLength.count(20_000, long: 200_000) {
            let (type, json) = random.canonicalValue()
            let value = try read(json, as: type)
            let back = try self.json(value, as: type)
            #expect(back == json, "\(type.name): \(String(decoding: json, as: UTF8.self))")
        }
    }
}
