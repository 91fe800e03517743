import SyncModel
import Testing

@Suite struct PartitioningTests {
    /// The vectors of Kafka's own `Utils.murmur2` tests.
    @Test(arguments: [
        ("21", -973_932_308), ("foobar", -790_332_482), ("a-little-bit-long-string", -985_981_536),
        ("a-little-bit-longer-string", -1_486_304_829),
        ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971), ("abc", 479_470_107),
    ])
    func murmur2IsKafkas(text: String, hash: Int) {
        #expect(Int(Int32(bitPattern: murmur2(Array(text.utf8).span.bytes))) == hash)
    }

    @Test func thePartitionOfAnOwnerNeverChanges() {
        let owner = SyncID(unchecked: "foobar")
        let hash = UInt32(bitPattern: -790_332_482) & 0x7FFF_FFFF
        #expect(Partitioning(count: 64).partition(of: owner) == Int(hash) % 64)
        #expect(Partitioning(count: 1).partition(of: owner) == 0)
        // The hash loses its sign bit before the remainder is taken: 1357151166, not 3504634814.
        #expect(Partitioning(count: 1_000).partition(of: owner) == 166)
    }

    @Test(arguments: 1...9)
    func aPartitionIsInRangeForIdsOfEveryLength(count: Int) {
        let partitioning = Partitioning(count: count)
        var used = Set<Int>()
        for length in 1...255 {
            used.insert(partitioning.partition(of: SyncID(unchecked: String(repeating: "ü", count: length / 2) + "x")))
        }
        #expect(used == Set(0..<count))
    }

    @Test func ownersWithCanonicallyEquivalentIdsAreDistinct() {
        let composed = SyncID(unchecked: "\u{E9}")
        let decomposed = SyncID(unchecked: "e\u{301}")
        let partitioning = Partitioning(count: 1 << 20)
        #expect(partitioning.partition(of: composed) != partitioning.partition(of: decomposed))
    }
}
