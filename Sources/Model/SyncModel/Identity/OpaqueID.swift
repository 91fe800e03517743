/// An identifier that Weir takes as it comes: 1 to 255 bytes of UTF-8 without NUL, compared byte by byte, never changed.
///
/// Swift's `String` compares by canonical equivalence, so two different ids could count as one; the types that conform
/// here compare their bytes. The rule stands in the client contract ("Ids, syncIds and knowledgeIds are opaque").
package protocol OpaqueID: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// The text as it was sent.
    var text: String { get }

    /// Wraps text that is known to be valid; traps where it is not.
    init(unchecked text: String)
}

extension OpaqueID {
    /// The largest size in bytes (contract: 1-255).
    package static var maximumLength: Int { 255 }

    /// Checks and wraps text from outside; `nil` when it is empty, longer than 255 bytes or holds NUL.
    package init?(_ text: String) {
        guard Self.isValid(text) else { return nil }
        self.init(unchecked: text)
    }

    /// Checks and wraps bytes from outside; `nil` when they are not UTF-8 or break the rule for ids.
    package init?(utf8 bytes: some Sequence<UInt8>) {
        guard let text = String(validating: Array(bytes), as: UTF8.self) else { return nil }
        self.init(text)
    }

    /// Whether text may serve as an id.
    package static func isValid(_ text: String) -> Bool {
        let bytes = text.utf8.span
        guard bytes.count >= 1, bytes.count <= maximumLength else { return false }
        for index in bytes.indices where bytes[index] == 0 { return false }
        return true
    }

    /// The text itself, for logs and messages.
    package var description: String { text }

    /// Equal when every byte is.
    package static func == (left: Self, right: Self) -> Bool {
        left.text.utf8.span.bytes.isEqual(to: right.text.utf8.span.bytes)
    }

    /// Whether the id is spelled with these bytes.
    package func hasBytes(_ bytes: RawSpan) -> Bool { text.utf8.span.bytes.isEqual(to: bytes) }

    /// Ordered by bytes, so that every machine sorts alike.
    package static func < (left: Self, right: Self) -> Bool {
        left.text.utf8.lexicographicallyPrecedes(right.text.utf8)
    }

    /// Hashes the bytes, as equality compares them.
    package func hash(into hasher: inout Hasher) {
        text.utf8.span.bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
        hasher.combine(0xFF as UInt8)
    }
}

/// The owner of data: a user or a tenant (seeds: `syncId`).
package struct SyncID: OpaqueID {
    /// The text as it was sent.
    package let text: String

    /// Wraps text that is known to be valid; traps where it is not.
    package init(unchecked text: String) {
        precondition(Self.isValid(text), "a syncId has 1-255 bytes of UTF-8 without NUL")
        self.text = text
    }
}

/// A device of an owner (seeds: `knowledgeId`; other systems: source id, installation id).
///
/// `*` is no device's name: in a knowledge vector it stands for all devices that are not named.
package struct KnowledgeID: OpaqueID {
    /// The text as it was sent.
    package let text: String

    /// Wraps text that is known to be valid; traps where it is not.
    package init(unchecked text: String) {
        precondition(Self.isValid(text), "a knowledgeId has 1-255 bytes of UTF-8 without NUL")
        self.text = text
    }

    /// The entry of a knowledge vector that stands for every device not named, a floor.
    package static let everyOther = KnowledgeID(unchecked: "*")
}

/// The primary key of a row within its table and owner (seeds: `id`, mostly a GUID).
package struct RowID: OpaqueID {
    /// The text as it was sent.
    package let text: String

    /// Wraps text that is known to be valid; traps where it is not.
    package init(unchecked text: String) {
        precondition(Self.isValid(text), "an id has 1-255 bytes of UTF-8 without NUL")
        self.text = text
    }
}

extension RawSpan {
    /// Whether both have the same bytes, compared eight at a time: ids are compared for every change and row.
    fileprivate func isEqual(to other: RawSpan) -> Bool {
        guard byteCount == other.byteCount else { return false }
        // All loads lie below the count that the spans share.
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
