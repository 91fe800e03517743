import Testing
import WebTokens

/// Signatures, and attacks on them.
@Suite struct SignatureTests {
    @Test(arguments: [TestTokens.rsa, TestTokens.ec, TestTokens.ed])
    func acceptsTokensOfEachAlgorithm(key: SigningKey) throws {
        #expect(try TestTokens.check(key.token(TestTokens.claims), TestTokens.set(key)) == "abc")
        let all = try TestTokens.set(TestTokens.rsa, TestTokens.ec, TestTokens.ed)
        #expect(try TestTokens.check(key.token(TestTokens.claims), all) == "abc")
    }

    @Test func acceptsTokensOfASecretWhateverKeyTheyName() throws {
        let keys = KeySet([try #require(VerificationKey(secret: Array("0123456789abcdef0123456789abcdef".utf8)))])
        #expect(try TestTokens.check(TestTokens.secret.token(TestTokens.claims), keys) == "abc")
        let named = TestTokens.secret.token(TestTokens.claims, header: ["kid": "\"any\""])
        #expect(try TestTokens.check(named, keys) == "abc")
        #expect(VerificationKey(secret: Array(repeating: 1, count: 31)) == nil)
    }

    /// RFC 7515, appendix A.3, with the key of the standard; RFC 8037, appendix A.4.
    @Test func acceptsTheSignaturesOfTheStandards() throws {
        let ec = try KeySet(
            jwks: Array(
                #"{"keys":[{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","#.utf8)
                + Array(#""y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]}"#.utf8))
        let token =
            "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290"
            + "Ijp0cnVlfQ.DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"
        #expect(TestTokens.cause(token, ec, TokenPolicy(), at: 1_300_000_000) == nil)
        #expect(TestTokens.cause(token, ec, TokenPolicy(), at: 1_300_819_440) == .expired)

        let ed = try KeySet(
            jwks: Array(
                #"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#.utf8))
        let signed =
            "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc."
            + "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg"
        let parsed = try SignedToken(Array(signed.utf8)[...])
        let key = try ed.key(for: parsed)
        let parts = signed.split(separator: ".")
        let signature = try #require(Base64URL.decode(parts[2].utf8))
        #expect(key.verifies(signature, of: Array("\(parts[0]).\(parts[1])".utf8)[...]))
        // Signed, but no claims.
        #expect(TestTokens.cause(signed, ed, TokenPolicy()) == .malformed)
    }

    @Test(arguments: ["none", "None", "NONE", "nOnE", "", "RS512", "ES384", "PS256", "rs256", "HS512", "EdDsa"])
    func refusesOtherAlgorithms(name: String) throws {
        let keys = try TestTokens.set(TestTokens.rsa)
        let header = #"{"alg":"\#(name)","kid":"rsa"}"#
        for signature in [[], Array(repeating: 0, count: 256)] as [[UInt8]] {
            let token = TestTokens.token(header: header, claims: TestTokens.claims, signature: signature)
            #expect(TestTokens.cause(token, keys) == .algorithm)
        }
    }

    @Test func refusesHMACWithAPublicKeyAsItsSecret() throws {
        let keys = try TestTokens.set(TestTokens.rsa)
        let der = try #require(TestTokens.rsa.publicKey)
        let base64 = Base64URL.encode(der)
        let pem = "-----BEGIN PUBLIC KEY-----\n\(base64)\n-----END PUBLIC KEY-----\n"
        for secret in [der, Array(pem.utf8), Array((TestTokens.rsa.jwk ?? "").utf8)] {
            let forged = try #require(SigningKey(secret: secret)).token(TestTokens.claims, header: ["kid": "\"rsa\""])
            #expect(TestTokens.cause(forged, keys) == .algorithm)
        }
    }

    @Test func refusesAnotherAlgorithmThanTheKeys() throws {
        let keys = try TestTokens.set(TestTokens.rsa, TestTokens.ec)
        #expect(
            TestTokens.cause(TestTokens.ec.token(TestTokens.claims, header: ["kid": "\"rsa\""]), keys) == .algorithm)
        #expect(
            TestTokens.cause(TestTokens.rsa.token(TestTokens.claims, header: ["kid": "\"ec\""]), keys) == .algorithm)
    }

    @Test func refusesSignaturesOfOtherKeysAndChangedTokens() throws {
        let keys = try TestTokens.set(TestTokens.rsa, TestTokens.ec, TestTokens.ed)
        #expect(TestTokens.cause(TestTokens.otherRSA.token(TestTokens.claims), keys) == .signature)
        for key in [TestTokens.rsa, TestTokens.ec, TestTokens.ed] {
            let token = key.token(TestTokens.claims)
            let parts = token.split(separator: ".").map(String.init)
            let claims = Base64URL.encode(Array(TestTokens.claims.replacing("abc", with: "xyz").utf8))
            #expect(TestTokens.cause("\(parts[0]).\(claims).\(parts[2])", keys) == .signature)
            let header = Base64URL.encode(Array(#"{"kid":"\#(key.id!)","alg":"\#(key.algorithm.rawValue)"}"#.utf8))
            #expect(TestTokens.cause("\(header).\(parts[1]).\(parts[2])", keys) == .signature)
            var signature = try #require(Base64URL.decode(parts[2].utf8))
            signature[signature.count / 2] ^= 1
            let changed = Base64URL.encode(signature)
            #expect(TestTokens.cause("\(parts[0]).\(parts[1]).\(changed)", keys) == .signature)
            let short = Base64URL.encode(Array(signature.dropLast()))
            #expect(TestTokens.cause("\(parts[0]).\(parts[1]).\(short)", keys) == .signature)
            #expect(TestTokens.cause("\(parts[0]).\(parts[1]).", keys) == .signature)
        }
    }

    @Test func refusesSignaturesOfP256InOtherForms() throws {
        let keys = try TestTokens.set(TestTokens.ec)
        let token = TestTokens.ec.token(TestTokens.claims)
        let parts = token.split(separator: ".").map(String.init)
        let signature = try #require(Base64URL.decode(parts[2].utf8))
        let (r, s) = (Array(signature.prefix(32)), Array(signature.suffix(32)))
        let zero = [UInt8](repeating: 0, count: 32)
        func integer(_ bytes: [UInt8]) -> [UInt8] { [2, 33, 0] + bytes }
        let der = [0x30, 70] + integer(r) + integer(s)
        let order: [UInt8] = [
            0xFF, 0xFF, 0xFF, 0xFF, 0x00, 0x00, 0x00, 0x00, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
            0xBC, 0xE6, 0xFA, 0xAD, 0xA7, 0x17, 0x9E, 0x84, 0xF3, 0xB9, 0xCA, 0xC2, 0xFC, 0x63, 0x25, 0x51,
        ]
        let forms = [
            der, [0] + r + [0] + s, [0] + r + s, r + [0] + s, r + s + [0], r + r + s + s, r, zero + zero, zero + s,
            r + zero, order + s,
            r + order, s + r, [],
        ]
        for form in forms {
            let forged = "\(parts[0]).\(parts[1]).\(Base64URL.encode(form))"
            #expect(TestTokens.cause(forged, keys) == .signature, "\(form)")
        }
    }

    /// The header may bring a key or say where one is: neither is looked at.
    @Test func ignoresKeysOfTheHeader() throws {
        let keys = try TestTokens.set(TestTokens.rsa)
        let jwk = try #require(TestTokens.otherRSA.jwk)
        for (name, value) in [
            ("jwk", jwk), ("jku", #""https://evil.example/keys""#), ("x5u", #""https://evil.example/cert""#),
            ("x5c", #"["MIIB"]"#), ("x5t", #""abc""#),
        ] {
            let forged = TestTokens.otherRSA.token(TestTokens.claims, header: [name: value])
            #expect(TestTokens.cause(forged, keys) == .signature)
            let foreign = TestTokens.otherRSA.token(TestTokens.claims, header: [name: value, "kid": "\"other\""])
            #expect(TestTokens.cause(foreign, keys) == .key)
            let genuine = TestTokens.rsa.token(TestTokens.claims, header: [name: value])
            #expect(TestTokens.cause(genuine, keys) == nil)
        }
    }

    @Test(arguments: [
        "../../../../etc/passwd", "https://evil.example/jwks.json", "file:///dev/null", "' OR 1=1 --", "rsa\u{0}",
        "RSA",
        " rsa", "",
    ])
    func findsKeysByTheirExactNameAlone(id: String) throws {
        let keys = try TestTokens.set(TestTokens.rsa)
        let escaped = id.replacing("\u{0}", with: "\\u0000")
        let token = TestTokens.rsa.token(TestTokens.claims, header: ["kid": "\"\(escaped)\""])
        #expect(TestTokens.cause(token, keys) == .key)
    }

    @Test func aTokenWithoutAKeyNameIsOfTheOnlyKeyOfItsAlgorithm() throws {
        let unnamed = TestTokens.token(
            header: #"{"alg":"RS256"}"#, claims: TestTokens.claims, signature: [])
        let message = unnamed.dropLast()
        let signature = try #require(TestTokens.rsa.signature(of: Array(message.utf8)))
        let token = unnamed + Base64URL.encode(signature)
        #expect(TestTokens.cause(token, try TestTokens.set(TestTokens.ec, TestTokens.rsa)) == nil)
        #expect(TestTokens.cause(token, try TestTokens.set(TestTokens.rsa, TestTokens.otherRSA)) == .key)
        #expect(TestTokens.cause(token, try TestTokens.set(TestTokens.ec)) == .key)
    }

    @Test func privateKeysKeepTheirNameInPEM() throws {
        for algorithm in [SignatureAlgorithm.rs256, .es256, .edDSA] {
            let key = try #require(SigningKey(generating: algorithm))
            let pem = try #require(key.pem)
            let again = try #require(SigningKey(pem: pem))
            #expect(again.algorithm == algorithm)
            #expect(again.id == key.id)
            #expect(TestTokens.cause(again.token(TestTokens.claims), try TestTokens.set(key)) == nil)
        }
        #expect(SigningKey(generating: .hs256) == nil)
        #expect(SigningKey(pem: Array("-----BEGIN PRIVATE KEY-----".utf8)) == nil)
    }

    /// RFC 8037, appendix A.3: the thumbprint of its key.
    @Test func namesKeysByTheirThumbprint() throws {
        let pem = """
            -----BEGIN PRIVATE KEY-----
            MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g
            -----END PRIVATE KEY-----

            """
        let key = try #require(SigningKey(pem: Array(pem.utf8)))
        #expect(key.id == "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k")
    }
}
