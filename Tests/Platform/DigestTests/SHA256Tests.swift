import Digest
import Testing

@Suite struct SHA256Tests {
    /// The examples of FIPS 180-4 and the empty message.
    @Test(arguments: [
        ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        ),
    ])
    func agreesWithTheStandardsExamples(message: String, digest: String) {
        #expect(hexadecimal(SHA256.digest(of: Array(message.utf8))) == digest)
    }

    @Test func hashesAMillionLettersAsInTheStandard() {
        var hash = SHA256()
        let piece = [UInt8](repeating: 0x61, count: 1000)
        for _ in 0..<1000 { hash.update(piece) }
        #expect(
            hexadecimal(hash.finish()) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0")
    }

    @Test func piecesHaveTheSameDigestAsTheWhole() {
        let message = (0..<1000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        var hash = SHA256()
        for cut in [0, 1, 63, 64, 65, 999, 1000] {
            hash.update(Array(message[..<cut]))
            hash.update(message.span.bytes.extracting(cut..<message.count))
            #expect(hash.finish() == SHA256.digest(of: message))
        }
    }

    @Test func aFinishedHashCanBeReused() {
        var hash = SHA256()
        hash.update(Array("abc".utf8))
        let first = hash.finish()
        #expect(hash.finish() == SHA256.digest(of: []))
        hash.update(Array("abc".utf8))
        #expect(hash.finish() == first)
        #expect(first.count == SHA256.byteCount)
    }

    @Test func hexadecimalIsLowerCaseWithLeadingZeros() {
        #expect(hexadecimal([0x00, 0x0A, 0xF0, 0xFF] as [UInt8]) == "000af0ff")
        #expect(hexadecimal([] as [UInt8]).isEmpty)
    }
}
