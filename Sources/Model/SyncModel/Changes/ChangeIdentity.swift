/// A digest of 16 bytes: the first ones of a SHA-256, or of a `changeId` its number and fewer of them (``init(ofID:digest:)``).
///
/// Enough that two contents never share one: that of the same device's other changes is all that it is compared with.
package struct ShortDigest: Sendable, Hashable {
    package static let byteCount = 16

    /// The bytes, the first eight as the higher number.
    private var high: UInt64
    private var low: UInt64

    /// - Parameter digest: at least 16 bytes, of which the first count.
    package init(prefixOf digest: [UInt8]) {
        precondition(digest.count >= Self.byteCount, "a digest has at least 16 bytes")
        func number(_ bytes: ArraySlice<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
        high = number(digest[0..<8])
        low = number(digest[8..<16])
    }

    /// The digest of a `changeId`: ten bytes of its SHA-256 after the number with which it ends, in six.
    ///
    /// So ids that count up are next to each other in the index by which they are found; by their hashes alone, each would be on a page of
    /// its own. An id that ends with no digit, with more than 15 of them, or with a number of 2^48 or more has 16 bytes of its SHA-256, as all have
    /// before rules version 6.
    ///
    /// - Parameter digest: the SHA-256.
    package init(ofID id: Span<UInt8>, digest: [UInt8]) {
        self.init(prefixOf: digest)
        guard let number = Self.number(atEndOf: id) else { return }
        low = high << 16 | low >> 48
        high = number << 16 | high >> 48
    }

    /// The decimal number with which a text ends; `nil` for one without, of more than 15 digits, or of 2^48 or more.
    private static func number(atEndOf text: Span<UInt8>) -> UInt64? {
        var (number, factor): (UInt64, UInt64) = (0, 1)
        var index = text.count
        while index > 0, case let digit = text[index - 1] &- UInt8(ascii: "0"), digit <= 9 {
            guard factor <= 100_000_000_000_000 else { return nil }
            number += UInt64(digit) * factor
            factor *= 10
            index -= 1
        }
        return index < text.count && number < 1 << 48 ? number : nil
    }

    /// `nil` for any other number of bytes than 16.
    package init?(_ bytes: [UInt8]) {
        guard bytes.count == Self.byteCount else { return nil }
        self.init(prefixOf: bytes)
    }

    package var bytes: [UInt8] {
        [UInt8](unsafeUninitializedCapacity: Self.byteCount) { buffer, count in
            for place in 0..<8 {
                buffer[place] = UInt8(truncatingIfNeeded: high >> UInt64(56 - 8 * place))
                buffer[place + 8] = UInt8(truncatingIfNeeded: low >> UInt64(56 - 8 * place))
            }
            count = Self.byteCount
        }
    }
}

/// What a change with a `changeId` is recognized by, once it was applied.
package struct ChangeIdentity: Sendable, Hashable {
    /// Of the `changeId`.
    package let id: ShortDigest
    /// Of the whole change as ingest read it: names and values in canonical form, nothing of its batch.
    package let content: ShortDigest

    package init(id: ShortDigest, content: ShortDigest) {
        self.id = id
        self.content = content
    }
}
