/// Reads the fields of protobuf messages from borrowed bytes, within limits.
///
/// A message is read by asking for ``next()`` until it is `nil` and, for each field, calling one reading function or
/// ``skip(_:)``. Reading never traps, whatever the bytes are.
package struct WireReader {
    /// How a field's value is spelled.
    package enum WireType: UInt8, Sendable, Hashable {
        /// A number of 1 to 10 bytes.
        case varint = 0
        /// 8 bytes.
        case fixed64 = 1
        /// A length and that many bytes.
        case lengthDelimited = 2
        /// 4 bytes.
        case fixed32 = 5
    }

    /// A field whose tag was read and whose value comes next.
    package struct Field: Sendable, Hashable {
        /// Its number in the message.
        package let number: Int
        /// How its value is spelled.
        package let type: WireType
    }

    /// The whole record.
    ///
    /// It stays valid while the reader lives: readers are made by `init(decoding:)` alone, which lends
    /// them to a message's initialiser and does not return them. Every access lies below `end`, which is at most its count.
    private let base: UnsafeRawBufferPointer
    /// Where the next byte is read, counted from the start of the record.
    package private(set) var offset = 0
    private var end: Int
    private var fieldsLeft: Int
    private var depthLeft: Int

    init(_ bytes: UnsafeRawBufferPointer, limits: WireLimits) throws(WireError) {
        guard bytes.count <= limits.byteCount else { throw WireError(.messageTooLarge, offset: 0) }
        base = bytes
        end = bytes.count
        fieldsLeft = limits.fieldCount
        depthLeft = limits.depth
    }

    /// The next field of the message being read; `nil` at its end.
    @inline(__always)
    package mutating func next() throws(WireError) -> Field? {
        guard offset < end else { return nil }
        guard fieldsLeft > 0 else { throw WireError(.tooManyFields, offset: offset) }
        fieldsLeft -= 1
        let start = offset
        let tag = try varint()
        let number = tag >> 3
        guard number > 0, number < 1 << 29 else { throw WireError(.invalidTag, offset: start) }
        guard let type = WireType(rawValue: UInt8(tag & 7)) else {
            let isGroup = tag & 7 == 3 || tag & 7 == 4
            throw WireError(isGroup ? .group : .invalidTag, path: [Int(number)], offset: start)
        }
        return Field(number: Int(number), type: type)
    }

    /// Passes over a field that the message does not know.
    package mutating func skip(_ field: Field) throws(WireError) {
        switch field.type {
        case .varint:
            do { _ = try varint() } catch { throw error.inside(field) }
        case .fixed64: try advance(8, field)
        case .fixed32: try advance(4, field)
        case .lengthDelimited: _ = try range(field)
        }
    }

    /// A number spelled as a varint.
    @inline(__always)
    package mutating func varint(_ field: Field) throws(WireError) -> UInt64 {
        guard field.type == .varint else { throw failure(.wrongWireType, field) }
        do { return try varint() } catch { throw error.inside(field) }
    }

    /// The value of a length-delimited field, borrowed: valid only as long as the reader.
    @inline(__always)
    package mutating func buffer(_ field: Field) throws(WireError) -> UnsafeRawBufferPointer {
        guard field.type == .lengthDelimited else { throw failure(.wrongWireType, field) }
        return UnsafeRawBufferPointer(rebasing: base[try range(field)])
    }

    /// Reads a message within this one.
    ///
    /// - Parameter body: reads fields until ``next()`` is `nil`.
    @inline(__always)
    package mutating func message<Message>(
        _ field: Field, _ body: (inout WireReader) throws(WireError) -> Message
    ) throws(WireError) -> Message {
        guard field.type == .lengthDelimited else { throw failure(.wrongWireType, field) }
        guard depthLeft > 0 else { throw failure(.tooDeep, field) }
        let inner = try range(field)
        let outerEnd = end
        offset = inner.lowerBound
        end = inner.upperBound
        depthLeft -= 1
        let result: Message
        do { result = try body(&self) } catch { throw error.inside(field) }
        precondition(offset == end, "a message is read to its end")
        end = outerEnd
        depthLeft += 1
        return result
    }

    /// An error about a field, at the place reached.
    package func failure(_ code: WireError.Code, _ field: Field) -> WireError {
        WireError(code, path: [field.number], offset: offset)
    }

    /// An error about a required field that the message being read does not have.
    package func missing(_ number: Int) -> WireError { WireError(.missing, path: [number], offset: offset) }

    /// An error about a field whose number does not go with another one's.
    func outOfRange(_ number: Int) -> WireError { WireError(.outOfRange, path: [number], offset: offset) }

    /// Passes over a length-delimited value and says where it was.
    @inline(__always)
    private mutating func range(_ field: Field) throws(WireError) -> Range<Int> {
        let length: UInt64
        do { length = try varint() } catch { throw error.inside(field) }
        guard length <= UInt64(end - offset) else { throw failure(.truncated, field) }
        let start = offset
        offset += Int(length)
        return start..<offset
    }

    private mutating func advance(_ count: Int, _ field: Field) throws(WireError) {
        guard count <= end - offset else { throw failure(.truncated, field) }
        offset += count
    }

    @inline(__always)
    private mutating func varint() throws(WireError) -> UInt64 {
        guard offset < end else { throw WireError(.truncated, offset: offset) }
        let first = base[offset]
        guard first >= 0x80 else {
            offset += 1
            return UInt64(first)
        }
        return try longVarint()
    }

    private mutating func longVarint() throws(WireError) -> UInt64 {
        var value: UInt64 = 0
        var shift: UInt64 = 0
        var position = offset
        while true {
            guard position < end else { throw WireError(.truncated, offset: offset) }
            let byte = base[position]
            position += 1
            // The tenth byte holds the 64th bit alone.
            guard shift < 63 || byte <= 1 else { throw WireError(.varintOverflow, offset: offset) }
            value |= UInt64(byte & 0x7F) << shift
            if byte < 0x80 { break }
            shift += 7
        }
        offset = position
        return value
    }
}

extension WireError {
    /// The error as the message around sees it.
    func inside(_ field: WireReader.Field) -> WireError {
        var error = self
        error.path.insert(field.number, at: 0)
        return error
    }
}
