/// Assigns an owner to a partition permanently (I3): murmur2 of the syncId's bytes, as Kafka's default partitioner.
///
/// Weir computes it itself, so that the partitioner of a client library cannot move an owner. `control` records the
/// name of the function and the number of partitions.
package struct Partitioning: Sendable, Hashable {
    /// The name in `control`.
    package static let functionName = "murmur2"

    /// The number of partitions of each of `uploads`, `changes` and `ordered`, at least 1.
    package let count: Int

    /// Traps when the count is below 1.
    package init(count: Int) {
        precondition(count >= 1, "a topic has at least one partition")
        self.count = count
    }

    /// 0 to count-1.
    package func partition(of owner: SyncID) -> Int {
        var text = owner.text
        let hash = text.withUTF8 { murmur2($0.span.bytes) }
        return Int(hash & 0x7FFF_FFFF) % count
    }
}

/// 32-bit MurmurHash2 with Kafka's seed.
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
