import SyncModel
import Testing

@Suite struct ShortDigestTests {
    /// As different as those of SHA-256.
    private static func digest(_ seed: UInt8) -> [UInt8] { (0..<32).map { seed &* 31 &+ $0 &* 7 } }

    private static func bytes(ofID id: String, _ digest: [UInt8]) -> [UInt8] {
        ShortDigest(ofID: id.utf8.span, digest: digest).bytes
    }

    @Test func idsThatCountUpFollowEachOtherWhateverTheirHashes() {
        let numbers: [UInt64] = [0, 1, 2, 9, 10, 11, 255, 256, 65_535, 65_536, 999_999, 1 << 40, (1 << 48) - 1]
        let all = numbers.enumerated().map { index, number in
            Self.bytes(ofID: "sqlitenow:\(number)", Self.digest(UInt8(255 - index)))
        }
        #expect(zip(all, all.dropFirst()).allSatisfy { $0.lexicographicallyPrecedes($1) })
        #expect(all[3] == [0, 0, 0, 0, 0, 9] + Self.digest(252).prefix(10))
        #expect(all[12] == Array(repeating: 0xFF, count: 6) + Self.digest(243).prefix(10))
    }

    @Test(arguments: [
        "", "a", "5e1ae1a2-0b6f-4d3c-9d2a-01234567890b", "change 7 ", "7b", "\u{0661}", "281474976710656",
        "0000000000000001",
    ])
    func anIdThatEndsWithNoNumberOrALongOneHasTheBeginningOfItsHash(id: String) {
        #expect(Self.bytes(ofID: id, Self.digest(3)) == Array(Self.digest(3).prefix(16)))
    }

    @Test func idsOfOneNumberDifferByTheirHashes() {
        #expect(Self.bytes(ofID: "a7", Self.digest(1)) != Self.bytes(ofID: "b7", Self.digest(2)))
        #expect(Self.bytes(ofID: "7", Self.digest(1)) != Self.bytes(ofID: "07", Self.digest(2)))
    }
}
