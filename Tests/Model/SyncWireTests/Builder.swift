import SyncWire

/// Encodes protobuf fields by hand, also malformed ones.
struct Builder {
    var bytes: [UInt8] = []

    func tag(_ field: Int, _ type: UInt64) -> Builder { number(UInt64(field) << 3 | type) }

    func number(_ value: UInt64) -> Builder {
        var bytes = bytes
        var rest = value
        while rest >= 0x80 {
            bytes.append(UInt8(rest & 0x7F) | 0x80)
            rest >>= 7
        }
        return Builder(bytes: bytes + [UInt8(rest)])
    }

    func raw(_ more: [UInt8]) -> Builder { Builder(bytes: bytes + more) }

    func varint(_ field: Int, _ value: UInt64) -> Builder { tag(field, 0).number(value) }

    func blob(_ field: Int, _ value: [UInt8]) -> Builder {
        tag(field, 2).number(UInt64(value.count)).raw(value)
    }

    func text(_ field: Int, _ value: String) -> Builder { blob(field, Array(value.utf8)) }

    func message(_ field: Int, _ body: (Builder) -> Builder) -> Builder { blob(field, body(Builder()).bytes) }

    /// A field that no message knows, in every wire type.
    static let unknown = Builder().varint(1000, .max).tag(1001, 1).raw(Array("12345678".utf8)).text(1002, "abc")
        .tag((1 << 29) - 1, 5).raw(Array("1234".utf8)).bytes
}

/// The fields of a message's outermost level, each with its tag.
struct Fields: RandomAccessCollection {
    private let fields: [[UInt8]]

    init(_ bytes: [UInt8]) throws {
        fields = try FieldRanges(decoding: bytes).ranges.map { Array(bytes[$0]) }
    }

    var startIndex: Int { 0 }
    var endIndex: Int { fields.count }
    subscript(index: Int) -> [UInt8] { fields[index] }
}

/// Where the fields of a message's outermost level lie.
struct FieldRanges: WireDecodable {
    let ranges: [Range<Int>]

    init(from reader: inout WireReader) throws(WireError) {
        var ranges: [Range<Int>] = []
        var start = reader.offset
        while let field = try reader.next() {
            try reader.skip(field)
            ranges.append(start..<reader.offset)
            start = reader.offset
        }
        self.ranges = ranges
    }
}
