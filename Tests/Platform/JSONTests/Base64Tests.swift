import JSON
import Seeded
import Testing

@Suite("Base64")
struct Base64Tests {
    private static func encoded(_ data: [UInt8]) -> String {
        var bytes: [UInt8] = []
        Base64.encode(data.span, into: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func decoded(_ text: String) -> [UInt8]? {
        var bytes: [UInt8] = []
        return Base64.decode(text.utf8.span, into: &bytes) ? bytes : nil
    }

    @Test(
        "agrees with RFC 4648, section 10",
        arguments: [
            ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ])
    func agreesWithTheVectors(data: String, text: String) {
        #expect(Self.encoded(Array(data.utf8)) == text)
        #expect(Self.decoded(text) == Array(data.utf8))
    }

    @Test("uses the standard alphabet")
    func usesTheStandardAlphabet() {
        #expect(Self.encoded([0xFB, 0xEF, 0xBE, 0xFF, 0xFF, 0xFF]) == "++++////")
        #expect(Self.decoded("++++////") == [0xFB, 0xEF, 0xBE, 0xFF, 0xFF, 0xFF])
    }

    @Test("random bytes come back, behind what was there before")
    func roundTrips() {
        var random = SeededRandom(seed: 4648)
        for count in 0..<300 {
            let data = (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
            var text: [UInt8] = [1, 2]
            Base64.encode(data.span, into: &text)
            #expect(text.count == 2 + Base64.encodedCount(count))
            var back: [UInt8] = [3]
            let isDecoded = Base64.decode(text.span.extracting(droppingFirst: 2), into: &back)
            #expect(isDecoded)
            #expect(back == [3] + data)
        }
    }

    @Test(
        "refuses every text that is not the one encoding",
        arguments: [
            "Z", "Zg", "Zg=", "Zm8", "Zm9vYg", "=", "==", "====", "Z===", "Zg==Zg==", "Zm8=Zm9v", "Zg =", " Zg==",
            "Zg==\n", "Zm9\nv", "Zm9v\r\n", "Zm-_", "Zm9*", "Zmé=", "Zh==", "Zn==", "Zm9=", "Zm+=", "Z=g=", "=Zg=",
            "Zg=A",
            "Zg==Zm9vZg", "Zm\u{0}v", "Zm9vZm9=",
        ])
    func refusesOtherTexts(text: String) {
        var bytes: [UInt8] = [9]
        let isDecoded = Base64.decode(text.utf8.span, into: &bytes)
        #expect(!isDecoded)
        #expect(bytes == [9])
    }
}
