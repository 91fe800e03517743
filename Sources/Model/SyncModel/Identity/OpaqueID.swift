/// An identifier that Weir does not interpret: 1 to 255 bytes of UTF-8 without NUL, compared byte by byte, never
/// normalized.
///
/// Swift's `String` compares by canonical equivalence, so two different ids could be equal. Conforming types compare
/// bytes, as the client contract says ("Ids, syncIds and knowledgeIds are opaque").
package protocol OpaqueID: Sendable, Hashable, Comparable, CustomStringConvertible {
    var text: String { get }

    /// Traps when the text is not a valid id.
    init(unchecked text: String)
}

extension OpaqueID {
    /// In bytes (client contract).
    package static var maximumLength: Int { 255 }

    /// Validates text from outside; `nil` when it is empty, longer than 255 bytes or contains NUL.
    package init?(_ text: String) {
        guard Self.isValid(text) else { return nil }
        self.init(unchecked: text)
    }

    /// Validates bytes from outside; `nil` when they are not UTF-8 or not a valid id.
    package init?(utf8 bytes: some Sequence<UInt8>) {
        guard let text = String(validating: Array(bytes), as: UTF8.self) else { return nil }
        self.init(text)
    }

    package static func isValid(_ text: String) -> Bool {
        let bytes = text.utf8.span
        guard bytes.count >= 1, bytes.count <= maximumLength else { return false }
        for index in bytes.indices where bytes[index] == 0 { return false }
        return true
    }

    package var description: String { text }

    package static func == (left: Self, right: Self) -> Bool {
        left.text.utf8.span.bytes.isEqual(to: right.text.utf8.span.bytes)
    }

    package func hasBytes(_ bytes: RawSpan) -> Bool { text.utf8.span.bytes.isEqual(to: bytes) }

    /// Compares bytes, so that every machine sorts in the same order.
    package static func < (left: Self, right: Self) -> Bool {
        left.text.utf8.lexicographicallyPrecedes(right.text.utf8)
    }

    /// Hashes the bytes, as `==` compares them.
    package func hash(into hasher: inout Hasher) {
        text.utf8.span.bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
        hasher.combine(0xFF as UInt8)
    }
}

/// The owner of data, a user or a tenant (seeds: `syncId`).
package struct SyncID: OpaqueID {
    package let text: String

    /// Traps when the text is not a valid id.
    package init(unchecked text: String) {
        precondition(Self.isValid(text), "a syncId has 1-255 bytes of UTF-8 without NUL")
        self.text = text
    }
}

/// A device of a caller (seeds: `knowledgeId`; other systems: source id, installation id).
///
/// `*` is not a device: in a knowledge vector it is the entry of all devices that the vector does not name.
package struct KnowledgeID: OpaqueID {
    package let text: String

    /// Traps when the text is not a valid id.
    package init(unchecked text: String) {
        precondition(Self.isValid(text), "a knowledgeId has 1-255 bytes of UTF-8 without NUL")
        self.text = text
    }

    /// The key of the floor in a knowledge vector.
    package static let everyOther = KnowledgeID(unchecked: "*")
}

/// The primary key of a row within its table and owner (seeds: `id`, mostly a GUID).
package struct RowID: OpaqueID {
    package let text: String

    /// Traps when the text is not a valid id.
    package init(unchecked text: String) {
        precondition(Self.isValid(text), "an id has 1-255 bytes of UTF-8 without NUL")
        self.text = text
    }
}

/// What a device names one of its changes by, so that it is applied once for each owner.
package struct ChangeID: OpaqueID {
    package let text: String

    /// Traps when the text is not a valid id.
    package init(unchecked text: String) {
        precondition(Self.isValid(text), "a changeId has 1-255 bytes of UTF-8 without NUL")
        self.text = text
    }
}

extension RawSpan {
    /// Compares eight bytes at a time, since ids are compared for every change and row.
    fileprivate func isEqual(to other: RawSpan) -> Bool {
        guard byteCount == other.byteCount else { return false }
        // All loads are below the byte count of both spans.
        var offset = 0
        while offset + 8 <= byteCount {
            let word = unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self)
            guard word == other.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self) else { return false }
            offset += 8
        }
        while offset < byteCount {
            let byte = unsafeLoad(fromByteOffset: offset, as: UInt8.self)
            guard byte == other.unsafeLoad(fromByteOffset: offset, as: UInt8.self) else { return false }
            offset += 1
        }
        return true
    }
}
