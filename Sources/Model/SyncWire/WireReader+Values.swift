import Digest
import SyncModel

/// The kinds of values that fields have, each checked against its rule.
extension WireReader {
    /// A number from 0 to a maximum.
    package mutating func number(_ field: Field, upTo maximum: Int64 = .max) throws(WireError) -> Int64 {
        let value = try varint(field)
        guard value <= UInt64(maximum) else { throw failure(.outOfRange, field) }
        return Int64(value)
    }

    /// A number from 1 on.
    package mutating func positive(_ field: Field, upTo maximum: Int64 = .max) throws(WireError) -> Int64 {
        let value = try number(field, upTo: maximum)
        guard value > 0 else { throw failure(.outOfRange, field) }
        return value
    }

    /// A count or position, 0 to 2^31-1.
    package mutating func count(_ field: Field) throws(WireError) -> Int {
        Int(try number(field, upTo: Int64(Int32.max)))
    }

    /// A number with sign, zigzag.
    package mutating func signed(_ field: Field) throws(WireError) -> Int64 {
        let value = try varint(field)
        return Int64(bitPattern: value >> 1) ^ -Int64(bitPattern: value & 1)
    }

    /// A flag: every number but 0 is true, as everywhere in protobuf.
    package mutating func flag(_ field: Field) throws(WireError) -> Bool { try varint(field) != 0 }

    /// A timeStamp.
    package mutating func timeStamp(_ field: Field) throws(WireError) -> TimeStamp {
        guard let value = TimeStamp(rawValue: try number(field)) else { throw failure(.outOfRange, field) }
        return value
    }

    /// A member of an enum.
    package mutating func member<Member: WireEnum>(
        _ field: Field, of: Member.Type = Member.self
    ) throws(WireError) -> Member {
        guard let member = Member(wireNumber: try varint(field)) else { throw failure(.unknownValue, field) }
        return member
    }

    /// Bytes of any content.
    package mutating func bytes(_ field: Field) throws(WireError) -> [UInt8] { [UInt8](try buffer(field)) }

    /// Text of any length.
    package mutating func text(_ field: Field, maximumLength: Int = .max) throws(WireError) -> String {
        let utf8 = try buffer(field)
        guard utf8.count <= maximumLength else { throw failure(.tooLong, field) }
        return try text(utf8, field)
    }

    private func text(_ utf8: UnsafeRawBufferPointer, _ field: Field) throws(WireError) -> String {
        // Bytes may be read as UInt8 whatever their memory was bound to.
        let bytes = utf8.assumingMemoryBound(to: UInt8.self)
        do { return String(copying: try UTF8Span(validating: bytes.span)) } catch { throw failure(.invalidUTF8, field) }
    }

    /// Text of 1 to 255 bytes: an epoch, a name.
    package mutating func name(_ field: Field) throws(WireError) -> String {
        let name = try text(field, maximumLength: 255)
        guard !name.isEmpty else { throw failure(.missing, field) }
        return name
    }

    /// An id.
    package mutating func id<ID: OpaqueID>(_ field: Field, as: ID.Type = ID.self) throws(WireError) -> ID {
        let utf8 = try buffer(field)
        guard (1...ID.maximumLength).contains(utf8.count), !utf8.contains(0) else { throw failure(.invalidID, field) }
        return ID(unchecked: try text(utf8, field))
    }

    /// A knowledgeId that names a device: any but `*`.
    package mutating func device(_ field: Field) throws(WireError) -> KnowledgeID {
        let id = try id(field, as: KnowledgeID.self)
        guard id != .everyOther else { throw failure(.invalidID, field) }
        return id
    }

    /// The hash of a schema version: 32 lower-case hexadecimal digits.
    package mutating func schemaHash(_ field: Field) throws(WireError) -> String {
        let text = try text(field)
        let isHash = text.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
        guard isHash, text.utf8.count == 32 else { throw failure(.invalidForm, field) }
        return text
    }

    /// The SHA-256 of a batch's content.
    package mutating func contentHash(_ field: Field, mayBeEmpty: Bool = false) throws(WireError) -> [UInt8] {
        let hash = try buffer(field)
        guard hash.count == SHA256.byteCount || (mayBeEmpty && hash.isEmpty) else { throw failure(.invalidForm, field) }
        return [UInt8](hash)
    }

    /// The values of a row or a change.
    package mutating func values(_ field: Field) throws(WireError) -> RowValues {
        guard let values = RowValues(encoded: try bytes(field)) else { throw failure(.invalidValues, field) }
        return values
    }
}
