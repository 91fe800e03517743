import Digest
import SyncModel

/// The types of field values, each validated.
extension WireReader {
    /// 0 to `maximum`.
    package mutating func number(_ field: Field, upTo maximum: Int64 = .max) throws(WireError) -> Int64 {
        let value = try varint(field)
        guard value <= UInt64(maximum) else { throw failure(.outOfRange, field) }
        return Int64(value)
    }

    /// At least 1.
    package mutating func positive(_ field: Field, upTo maximum: Int64 = .max) throws(WireError) -> Int64 {
        let value = try number(field, upTo: maximum)
        guard value > 0 else { throw failure(.outOfRange, field) }
        return value
    }

    /// A count or index, 0 to 2^31-1.
    package mutating func count(_ field: Field) throws(WireError) -> Int {
        Int(try number(field, upTo: Int64(Int32.max)))
    }

    /// Zigzag.
    package mutating func signed(_ field: Field) throws(WireError) -> Int64 {
        let value = try varint(field)
        return Int64(bitPattern: value >> 1) ^ -Int64(bitPattern: value & 1)
    }

    /// Every number except 0 is true, as protobuf specifies.
    package mutating func flag(_ field: Field) throws(WireError) -> Bool { try varint(field) != 0 }

    package mutating func timeStamp(_ field: Field) throws(WireError) -> TimeStamp {
        guard let value = TimeStamp(rawValue: try number(field)) else { throw failure(.outOfRange, field) }
        return value
    }

    package mutating func member<Member: WireEnum>(
        _ field: Field, of: Member.Type = Member.self
    ) throws(WireError) -> Member {
        guard let member = Member(wireNumber: try varint(field)) else { throw failure(.unknownValue, field) }
        return member
    }

    package mutating func bytes(_ field: Field) throws(WireError) -> [UInt8] { [UInt8](try buffer(field)) }

    package mutating func text(_ field: Field, maximumLength: Int = .max) throws(WireError) -> String {
        let utf8 = try buffer(field)
        guard utf8.count <= maximumLength else { throw failure(.tooLong, field) }
        return try text(utf8, field)
    }

    private func text(_ utf8: UnsafeRawBufferPointer, _ field: Field) throws(WireError) -> String {
        // Memory of any binding may be read as UInt8.
        let bytes = utf8.assumingMemoryBound(to: UInt8.self)
        do { return String(copying: try UTF8Span(validating: bytes.span)) } catch { throw failure(.invalidUTF8, field) }
    }

    /// 1 to 255 bytes: an epoch, a name.
    package mutating func name(_ field: Field) throws(WireError) -> String {
        let name = try text(field, maximumLength: 255)
        guard !name.isEmpty else { throw failure(.missing, field) }
        return name
    }

    package mutating func id<ID: OpaqueID>(_ field: Field, as: ID.Type = ID.self) throws(WireError) -> ID {
        let utf8 = try buffer(field)
        guard (1...ID.maximumLength).contains(utf8.count), !utf8.contains(0) else { throw failure(.invalidID, field) }
        return ID(unchecked: try text(utf8, field))
    }

    /// Any knowledgeId except `*`.
    package mutating func device(_ field: Field) throws(WireError) -> KnowledgeID {
        let id = try id(field, as: KnowledgeID.self)
        guard id != .everyOther else { throw failure(.invalidID, field) }
        return id
    }

    /// 32 lower-case hexadecimal digits.
    package mutating func schemaHash(_ field: Field) throws(WireError) -> String {
        let text = try text(field)
        guard SchemaVersion.isHash(text) else { throw failure(.invalidForm, field) }
        return text
    }

    package mutating func contentHash(_ field: Field, mayBeEmpty: Bool = false) throws(WireError) -> [UInt8] {
        let hash = try buffer(field)
        guard hash.count == SHA256.byteCount || (mayBeEmpty && hash.isEmpty) else { throw failure(.invalidForm, field) }
        return [UInt8](hash)
    }

    package mutating func shortDigest(_ field: Field) throws(WireError) -> ShortDigest {
        guard let digest = ShortDigest(try bytes(field)) else { throw failure(.invalidForm, field) }
        return digest
    }

    package mutating func values(_ field: Field) throws(WireError) -> RowValues {
        guard let values = RowValues(encoded: try bytes(field)) else { throw failure(.invalidValues, field) }
        return values
    }
}
