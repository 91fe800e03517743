/// What a message may cost before it is refused.
package struct WireLimits: Sendable, Hashable {
    /// The largest message in bytes.
    package let byteCount: Int
    /// How many fields it may have, those of messages within it included.
    package let fieldCount: Int
    /// How many messages may lie within each other, the outermost not counted.
    package let depth: Int

    /// Sets limits.
    package init(byteCount: Int, fieldCount: Int, depth: Int) {
        self.byteCount = byteCount
        self.fieldCount = fieldCount
        self.depth = depth
    }

    /// What every message of the contract stays below.
    ///
    /// Logs take records of some megabytes, so 64 MiB only bounds memory. 2 million fields are 150,000 changes with every
    /// field set, and bound what small fields can grow to in memory. The contract's own messages are 4 deep.
    package static let standard = WireLimits(byteCount: 64 << 20, fieldCount: 2_000_000, depth: 8)
}
