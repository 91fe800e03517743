import Fuzzing
import Testing
import WebTokens

/// Whatever a token or a set of keys holds: it is refused with a cause, or it is what was signed or published.
@Suite struct TokenFuzzTests {
    @Test func noDamagedTokenIsAccepted() throws {
        let keys = try TestTokens.set(TestTokens.ec, TestTokens.ed)
        let signed = [TestTokens.ec, TestTokens.ed].flatMap { key in
            [TestTokens.claims, TestTokens.claims.replacing("abc", with: "x\\u0000yz")].map { key.token($0) }
        }
        let corpus = signed.map { Array($0.utf8) }
        let tally = try Fuzzer(
            "token", count: TestLength.count(3000, long: 100_000), corpus: corpus,
            words: [".", "=", "-", "_", "eyJhbGciOiJub25lIn0", "e30", "\u{0}", "AAAA", " ", "..", "é"]
        ).run { bytes in
            let token = String(decoding: bytes, as: UTF8.self)
            do throws(TokenRefusal) {
                _ = try TestTokens.check(token, keys)
            } catch {
                guard !error.detail.isEmpty else { throw Fuzzer.BrokenPromise("refused without a reason") }
                return .refused
            }
            guard corpus.contains(bytes) else { throw Fuzzer.BrokenPromise("a token that nobody signed is accepted") }
            return .accepted
        }
        #expect(tally.accepted > 100 && tally.refused > 1000, "\(tally)")
    }

    /// The signature is genuine, whatever it signs.
    @Test func signedTextsOfAnyFormAreReadOrRefused() throws {
        let keys = try TestTokens.set(TestTokens.ed)
        let corpus = [
            TestTokens.claims,
            #"{"iss":"https://issuer","aud":["weir",""],"exp":1.7000036e9,"nbf":0,"iat":1,"x":[{}]}"#,
        ].map { Array($0.utf8) }
        let tally = try Fuzzer(
            "claims", count: TestLength.count(2000, long: 50_000), corpus: corpus,
            words: [
                "{", "}", "[", "]", "\"exp\"", "null", "1e999", "-0", "\\u0000", "\\ud800", ":", ",", "\"aud\"", "é",
            ]
        ).run { bytes in
            guard let token = TestTokens.ed.token(claims: bytes) else { throw Fuzzer.BrokenPromise("it is not signed") }
            do throws(TokenRefusal) {
                _ = try TestTokens.check(token, keys)
                return .accepted
            } catch {
                // The signature is that of the key, whatever is signed.
                if error.cause == .signature { throw Fuzzer.BrokenPromise("\(error)") }
                return .refused
            }
        }
        #expect(tally.accepted > 50 && tally.refused > 500, "\(tally)")
    }

    @Test func setsOfAnyFormAreReadOrRefused() throws {
        let corpus = [SigningKey.jwks([TestTokens.rsa, TestTokens.ec, TestTokens.ed]), SigningKey.jwks([])]
        let tally = try Fuzzer(
            "key set", count: TestLength.count(2000, long: 50_000), corpus: corpus,
            words: [
                "{", "}", "\"kty\"", "\"RSA\"", "\"oct\"", "\"k\"", "\"d\"", "null", "\"AQAB\"", "\"\"", "\"P-256\"",
                "AAAA",
                "\"crv\"", "\"n\"", "\"x\"", ",",
            ]
        ).run { bytes in
            do throws(KeySetError) {
                let set = try KeySet(jwks: bytes)
                guard set.keys.allSatisfy({ $0.algorithm != .hs256 }) else {
                    throw KeySetError("broken: a secret of a published set is used")
                }
                return .accepted
            } catch {
                if error.description.hasPrefix("broken") { throw Fuzzer.BrokenPromise("\(error)") }
                return .refused
            }
        }
        #expect(tally.accepted > 50 && tally.refused > 500, "\(tally)")
    }
}
