import Testing
import WebTokens

/// What keys of a source are used, and for what.
@Suite struct KeySetTests {
    private func set(_ jwk: String) throws -> KeySet { try KeySet(jwks: Array(#"{"keys":[\#(jwk)]}"#.utf8)) }

    private func members(_ jwk: String, _ more: String) -> String { jwk.dropLast() + "," + more + "}" }

    @Test func aKeyIsForTheOneAlgorithmThatItsTypeAllows() throws {
        for key in [TestTokens.rsa, TestTokens.ec, TestTokens.ed] {
            let jwk = try #require(key.jwk)
            #expect(try set(jwk).keys.map(\.algorithm) == [key.algorithm])
            let unbound = jwk.replacing(#","alg":"\#(key.algorithm.rawValue)""#, with: "")
            #expect(try set(unbound).keys.map(\.algorithm) == [key.algorithm])
            for other in ["none", "HS256", "RS512", "PS256", "ES384", "RSA-OAEP"] {
                let bound = jwk.replacing(#""alg":"\#(key.algorithm.rawValue)""#, with: #""alg":"\#(other)""#)
                #expect(try set(bound).keys.isEmpty, "\(other)")
            }
        }
    }

    @Test(arguments: [
        (#""use":"enc""#, false), (#""key_ops":["verify"]"#, true), (#""key_ops":["sign","verify"]"#, true),
        (#""key_ops":["encrypt"]"#, false), (#""key_ops":[]"#, false), (#""key_ops":"verify""#, false),
        (#""d":"AAAA""#, false), (#""x5c":["MIIB"]"#, true), (#""ext":true"#, true), (#""kty":"EC""#, false),
    ])
    func looksAtTheUseOfAKey(member: String, isUsed: Bool) throws {
        let jwk = try #require(TestTokens.ec.jwk).replacing(#","use":"sig""#, with: "")
        let keys = try set(members(jwk, member))
        #expect(keys.keys.isEmpty != isUsed)
        #expect(keys.unused.isEmpty == isUsed)
    }

    @Test(arguments: [
        #"{"kty":"oct","k":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA","alg":"HS256","kid":"s"}"#,
        #"{"kty":"EC","crv":"P-256","x":"AAAA","y":"AAAA"}"#,
        #"{"kty":"EC","crv":"P-521","x":"AAAA","y":"AAAA"}"#,
        #"{"kty":"EC","crv":"secp256k1","x":"AAAA","y":"AAAA"}"#,
        #"{"kty":"OKP","crv":"X25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#,
        #"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHUR"}"#,
        #"{"kty":"RSA","n":"","e":"AQAB"}"#, #"{"kty":"RSA","n":"AQAB"}"#, #"{"kty":"none"}"#, "{}", "1", "null",
        #"{"kty":1}"#,
    ])
    func leavesOutKeysThatItCannotUse(jwk: String) throws {
        let keys = try set(jwk)
        #expect(keys.keys.isEmpty)
        #expect(keys.unused.count == 1)
        // Beside a key that can be used.
        let usable = try #require(TestTokens.rsa.jwk)
        let both = try set("\(jwk),\(usable)")
        #expect(both.keys.map(\.algorithm) == [.rs256])
    }

    @Test func leavesOutAPointThatIsNotOnTheCurve() throws {
        let (x, y) = (
            Base64URL.encode(Array(repeating: 1, count: 32)), Base64URL.encode(Array(repeating: 2, count: 32))
        )
        #expect(try set(#"{"kty":"EC","crv":"P-256","x":"\#(x)","y":"\#(y)"}"#).keys.isEmpty)
    }

    @Test(arguments: [(1024, false), (2047, false), (2048, true), (8192, true), (8200, false)])
    func acceptsModuliOfUsualLengths(bits: Int, isUsed: Bool) throws {
        var modulus = [UInt8](repeating: 0xC5, count: (bits + 7) / 8)
        if bits % 8 != 0 { modulus[0] = 0x7F }
        let jwk = #"{"kty":"RSA","n":"\#(Base64URL.encode(modulus))","e":"AQAB"}"#
        #expect(try set(jwk).keys.isEmpty != isUsed)
    }

    @Test(arguments: [("AQ", false), ("Ag", false), ("Aw", true), ("AQAB", true), ("AQAAAAAB", false), ("AA", false)])
    func refusesWeakAndLongExponents(exponent: String, isUsed: Bool) throws {
        let modulus = Base64URL.encode([UInt8](repeating: 0xC5, count: 256))
        #expect(try set(#"{"kty":"RSA","n":"\#(modulus)","e":"\#(exponent)"}"#).keys.isEmpty != isUsed)
    }

    @Test(arguments: [
        "", "x", "[]", "{}", #"{"keys":{}}"#, #"{"keys":null}"#, #"{"keys":[],"keys":[]}"#, "<html>", "\u{FEFF}{}",
    ])
    func refusesDocumentsThatAreNoSet(document: String) {
        #expect(throws: KeySetError.self) { try KeySet(jwks: Array(document.utf8)) }
    }

    @Test func refusesMoreKeysThanAnyIssuerHas() throws {
        let keys = Array(repeating: "{}", count: 101).joined(separator: ",")
        #expect(throws: KeySetError.self) { try set(keys) }
        #expect(try set(Array(repeating: "{}", count: 100).joined(separator: ",")).unused.count == 100)
    }

    @Test func anEmptySetIsOne() throws {
        #expect(try set("").keys.isEmpty)
    }

    @Test func keysAreTheSameByNameAlgorithmAndMaterial() throws {
        let jwk = try #require(TestTokens.ec.jwk)
        let (one, same) = (try set(jwk), try set(jwk))
        #expect(same.contains(one.keys[0].fingerprint))
        let renamed = try set(jwk.replacing(#""kid":"ec""#, with: #""kid":"ec2""#))
        #expect(!renamed.contains(one.keys[0].fingerprint))
        #expect(!(try TestTokens.set(TestTokens.ed)).contains(one.keys[0].fingerprint))
    }

    /// Made with `openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=test`.
    @Test func readsCertificatesAsFirebasePublishesThem() throws {
        let keys = try KeySet(certificates: Array(Certificate.document.utf8))
        #expect(keys.keys.map(\.id) == ["one"])
        let signer = try #require(SigningKey(pem: Array(Certificate.privateKey.utf8), id: "one"))
        #expect(TestTokens.cause(signer.token(TestTokens.claims), keys) == nil)
        for document in ["[]", #"{"a":"","a":""}"#, "{"] {
            #expect(throws: KeySetError.self) { try KeySet(certificates: Array(document.utf8)) }
        }
    }

    /// Else one that is withdrawn would stay because of one that is new.
    @Test(arguments: [
        #""-----BEGIN CERTIFICATE-----""#, "1",
        // OpenSSL would ask the terminal for its password.
        #""-----BEGIN CERTIFICATE-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00000000000000000000000000000000\n\nAAAA\n-----END CERTIFICATE-----\n""#,
    ])
    func aCertificateThatCannotBeUsedIsLeftOut(member: String) throws {
        let others = Certificate.document.dropFirst()
        let keys = try KeySet(certificates: Array(#"{"two":\#(member),"#.utf8) + Array(others.utf8))
        #expect(keys.keys.map(\.id) == ["one"])
        #expect(keys.unused.count == 1)
    }
}
