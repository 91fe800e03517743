import Testing

@testable import TrackerFace

/// Header fields of requests for the database file.
@Suite struct DatabaseFieldTests {
    private static let text = "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:"

    @Test(arguments: [
        text, "sha-512=:AAAA:, " + text, text + ", sha-512=:AAAA:", "  \(text)  ", text + ";x=1",
    ]) func aSHA256IsFoundAmongOtherDigests(field: String) throws {
        let digest = try #require(ContentDigest.parse(field))
        #expect(digest.count == 32)
        #expect(digest.first == 0xE3 && digest.last == 0x55)
        #expect(ContentDigest.field(digest) == Self.text)
    }

    @Test(arguments: [
        "", "sha-256", "sha-256=", "sha-256=::", "sha-256=:AAAA:",
        "sha-512=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:",
        "sha-256=47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
        "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU:",
        "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
        "SHA-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:",
    ]) func otherFieldsHaveNone(field: String) { #expect(ContentDigest.parse(field) == nil) }

    @Test(arguments: [
        ("bytes=0-0", 0..<1), ("bytes=0-", 0..<10), ("bytes=9-9", 9..<10), ("bytes=3-5", 3..<6), ("bytes=3-99", 3..<10),
        ("bytes=-1", 9..<10), ("bytes=-99", 0..<10), ("BYTES=2-3", 2..<4), ("bytes=0-99999999999999999999", 0..<10),
        ("bytes=-99999999999999999999", 0..<10),
    ]) func aRangeIsCutAtTheEnd(field: String, range: Range<Int>) {
        #expect(ByteRange(field, of: 10) == .part(range))
    }

    @Test(arguments: ["bytes=10-", "bytes=10-12", "bytes=-0", "bytes=99999999999999999999-"])
    func aRangeWithoutBytesHasNone(field: String) { #expect(ByteRange(field, of: 10) == .none) }

    @Test(arguments: [
        nil, "", "bytes", "bytes=", "bytes=-", "bytes=5-3", "bytes=a-b", "bytes=0-1,3-4", "rows=0-1", "bytes=+1-2",
    ])
    func otherRangesAreIgnored(field: String?) { #expect(ByteRange(field, of: 10) == .whole) }

    @Test func anEmptyFileHasNoRange() {
        #expect(ByteRange("bytes=0-", of: 0) == .none)
        #expect(ByteRange("bytes=-5", of: 0) == .none)
    }
}
