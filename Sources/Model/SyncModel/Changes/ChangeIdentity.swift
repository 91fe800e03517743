/// The first 16 bytes of a SHA-256.
///
/// Enough that two contents never share one: that of the same device's other changes is all that it is compared with.
package struct ShortDigest: Sendable, Hashable {
    package static let byteCount = 16

    /// The bytes, the first eight as the higher number.
    private let high: UInt64
    private let low: UInt64

    /// - Parameter digest: at least 16 bytes, of which the first count.
    package init(prefixOf digest: [UInt8]) {
        precondition(digest.count >= Self.byteCount, "a digest has at least 16 bytes")
        func number(_ bytes: ArraySlice<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
        high = number(digest[0..<8])
        low = number(digest[8..<16])
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
