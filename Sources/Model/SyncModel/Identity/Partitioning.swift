/// Which partition an owner lives in, for ever (I3): murmur2 of the syncId's bytes, as Kafka's default partitioner does.
///
/// Weir computes it itself, so that no client library's choice moves an owner. The name of the function and the number of
/// partitions are part of a history and stand in `control`.
package struct Partitioning: Sendable, Hashable {
    /// The name that `control` records for this function.
    package static let functionName = "murmur2"

    /// How many partitions `uploads`, `changes` and `ordered` have, at least 1.
    package let count: Int

    /// Makes the function for a number of partitions; traps below 1.
    package init(count: Int) {
        precondition(count >= 1, "a topic has at least one partition")
        self.count = count
    }

    /// The partition of an owner, 0 to count-1.
    package func partition(of owner: SyncID) -> Int {
        var text = owner.text
        let hash = text.withUTF8 { murmur2($0.span.bytes) }
        return Int(hash & 0x7FFF_FFFF) % count
    }
}

/// MurmurHash2 in 32 bits with the seed that Kafka uses.
package func murmur2(_ bytes: RawSpan) -> UInt32 {
    let multiplier: UInt32 = 0x5BD1_E995
    let count = bytes.byteCount
    var hash = 0x9747_B28C ^ UInt32(truncatingIfNeeded: count)
    var offset = 0
    while offset + 4 <= count {
        var word = UInt32(littleEndian: bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt32.self))
        word &*= multiplier
        word ^= word >> 24
        word &*= multiplier
        hash &*= multiplier
        hash ^= word
        offset += 4
    }
    let rest = count - offset
    if rest > 0 {
        for index in (0..<rest).reversed() {
            hash ^= UInt32(bytes.unsafeLoad(fromByteOffset: offset + index, as: UInt8.self)) << UInt32(8 * index)
        }
        hash &*= multiplier
    }
    hash ^= hash >> 13
    hash &*= multiplier
    hash ^= hash >> 15
    return hash
}
