import CZlib

/// CRC-32 over the columns of one record of a stream file.
struct Checksum {
    /// Included in the checksum, so that records of two kinds never have the same input.
    enum Kind: Int64 {
        case meta = 1
        case upload = 2
        case owner = 3
        case knowledge = 4
        case row = 5
        case device = 6
        case outcome = 7
        case timeEntry = 8
    }

    private var state: UInt

    init(_ kind: Kind, _ numbers: Int64...) {
        state = 0
        add(kind.rawValue)
        for number in numbers { add(number) }
    }

    mutating func add(_ number: Int64) {
        // Eight bytes of a local value, borrowed for the call.
        withUnsafeBytes(of: number.littleEndian) { add($0) }
    }

    /// Adds the count, then the bytes, so that columns cannot be split differently.
    mutating func add(bytes: borrowing RawSpan) {
        add(Int64(bytes.byteCount))
        bytes.withUnsafeBytes { add($0) }
    }

    mutating func add(text: String) {
        var text = text
        text.withUTF8 { add(bytes: $0.span.bytes) }
    }

    var value: Int64 { Int64(UInt32(truncatingIfNeeded: state)) }

    /// The bytes are borrowed for the call, which only reads them.
    private mutating func add(_ bytes: UnsafeRawBufferPointer) {
        guard let base = bytes.baseAddress else { return }
        state = crc32_z(state, base.assumingMemoryBound(to: UInt8.self), bytes.count)
    }
}

extension Checksum {
    /// The checksum of a row of the stream.
    ///
    /// Numbers and byte counts are added first in one call, since this runs for every row written and read.
    static func row(
        owner: Int64, device: Int64, timeStamp: Int64, table: Int64, isExact: Int64, createdAt: Int64,
        columns: Int64, id: borrowing RawSpan, json: borrowing RawSpan
    ) -> Int64 {
        let head: InlineArray<10, Int64> = [
            Kind.row.rawValue.littleEndian, owner.littleEndian, device.littleEndian, timeStamp.littleEndian,
            table.littleEndian, isExact.littleEndian, createdAt.littleEndian, columns.littleEndian,
            Int64(id.byteCount).littleEndian,
            Int64(json.byteCount).littleEndian,
        ]
        var checksum = Checksum()
        // Borrowed for each call, which only reads them.
        head.span.withUnsafeBytes { checksum.add($0) }
        id.withUnsafeBytes { checksum.add($0) }
        json.withUnsafeBytes { checksum.add($0) }
        return checksum.value
    }

    private init() { state = 0 }
}
