/// Reads the fields of protobuf messages from borrowed bytes, within limits.
///
/// Call ``next()`` until it returns `nil` and, for each field, one reading function or ``skip(_:)``. Reading never
/// traps, whatever the bytes are.
package struct WireReader {
    /// How a field's value is encoded.
    package enum WireType: UInt8, Sendable, Hashable {
        /// 1 to 10 bytes.
        case varint = 0
        /// 8 bytes.
        case fixed64 = 1
        /// A length, then that many bytes.
        case lengthDelimited = 2
        /// 4 bytes.
        case fixed32 = 5
    }

    /// A field whose tag was read and whose value is next.
    package struct Field: Sendable, Hashable {
        package let number: Int
        package let type: WireType
    }

    /// The whole record.
    ///
    /// Valid during the reader's lifetime: only `init(decoding:)` creates readers. It lends them to a message's
    /// initializer and does not return them. Every access is below `end`, which is at most its count.
    private let base: UnsafeRawBufferPointer
    /// The offset of the next byte in the record.
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

    /// The next field of the current message; `nil` at its end.
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

    /// Skips an unknown field.
    package mutating func skip(_ field: Field) throws(WireError) {
        switch field.type {
        case .varint:
            do { _ = try varint() } catch { throw error.inside(field) }
        case .fixed64: try advance(8, field)
        case .fixed32: try advance(4, field)
        case .lengthDelimited: _ = try range(field)
        }
    }

    @inline(__always)
    package mutating func varint(_ field: Field) throws(WireError) -> UInt64 {
        guard field.type == .varint else { throw failure(.wrongWireType, field) }
        do { return try varint() } catch { throw error.inside(field) }
    }

    /// The value of a length-delimited field, borrowed from the record.
    @inline(__always)
    package mutating func buffer(_ field: Field) throws(WireError) -> UnsafeRawBufferPointer {
        guard field.type == .lengthDelimited else { throw failure(.wrongWireType, field) }
        return UnsafeRawBufferPointer(rebasing: base[try range(field)])
    }

    /// Reads a nested message.
    ///
    /// - Parameter body: reads fields until ``next()`` returns `nil`.
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

    /// An error in a field, at the current offset.
    package func failure(_ code: WireError.Code, _ field: Field) -> WireError {
        WireError(code, path: [field.number], offset: offset)
    }

    /// An error for a required field that the current message lacks.
    package func missing(_ number: Int) -> WireError { WireError(.missing, path: [number], offset: offset) }

    /// An error for a number that contradicts another field.
    func outOfRange(_ number: Int) -> WireError { WireError(.outOfRange, path: [number], offset: offset) }

    /// Skips a length-delimited value and returns its range.
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
            // The tenth byte has only the 64th bit.
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
    /// The error with the path of the enclosing message.
    func inside(_ field: WireReader.Field) -> WireError {
        var error = self
        error.path.insert(field.number, at: 0)
        return error
    }
}
