import Testing
import WebTokens

/// The form of tokens and their claims, and attacks on them.
@Suite struct ClaimTests {
    private let keys: KeySet

    init() throws { keys = try TestTokens.set(TestTokens.ec) }

    private func cause(
        _ claims: String, _ policy: TokenPolicy = TestTokens.policy, header: KeyValuePairs<String, String> = [:]
    ) -> TokenRefusal.Cause? {
        TestTokens.cause(TestTokens.ec.token(claims, header: header), keys, policy)
    }

    @Test(
        arguments: [
            ("exp", "1699999941", nil), ("exp", "1699999940", .expired), ("exp", "1699999939.5", .expired),
            ("exp", "0", .expired), ("exp", "1700000000.25", nil), ("exp", "17e8", nil),
            ("nbf", "1700000060", nil), ("nbf", "1700000061", .notYetValid), ("nbf", "0", nil),
            ("iat", "1700000060", nil), ("iat", "1700000061", .notYetValid), ("iat", "253402300799", .notYetValid),
        ] as [(String, String, TokenRefusal.Cause?)])
    func comparesTimesWithALeeway(claim: String, value: String, cause expected: TokenRefusal.Cause?) {
        let others = #""iss":"https://issuer","aud":"weir""#
        let claims =
            claim == "exp" ? #"{\#(others),"exp":\#(value)}"# : #"{\#(others),"exp":1700000001,"\#(claim)":\#(value)}"#
        #expect(cause(claims) == expected, "\(claims)")
    }

    @Test func withoutALeewayTheTimeOfExpiryIsExclusive() {
        let policy = TokenPolicy(leeway: 0)
        #expect(cause(#"{"exp":1700000000}"#, policy) == .expired)
        #expect(cause(#"{"exp":1700000001}"#, policy) == nil)
        #expect(cause(#"{"exp":1700000001,"nbf":1700000001}"#, policy) == .notYetValid)
    }

    @Test(arguments: [
        #""1700003600""#, "null", "true", "[]", "{}", "[1700003600]", "-1", "1e300", "1e999", "253402300800",
        "1700003600000", "99999999999999999999999999999999999999", "9223372036854775807", "-0.5",
    ])
    func refusesTimesThatAreNone(value: String) {
        for claim in ["exp", "nbf", "iat"] {
            let others = claim == "exp" ? "" : #","exp":1700003600"#
            let claims = #"{"iss":"https://issuer","aud":"weir","\#(claim)":\#(value)\#(others)}"#
            #expect(cause(claims) == .claims, "\(claims)")
        }
    }

    @Test func demandsAnExpiry() {
        #expect(cause(#"{"iss":"https://issuer","aud":"weir"}"#) == .claims)
    }

    @Test(
        arguments: [
            (#""https://issuer""#, nil), (#""https://issuer/""#, .issuer), (#""HTTPS://ISSUER""#, .issuer),
            (#""""#, .issuer),
            (#"["https://issuer"]"#, .claims), ("null", .claims), ("1", .claims), (#""https://other""#, nil),
            (#""https://evil""#, .issuer), ("\"https://issuer\\u0000\"", .issuer),
        ] as [(String, TokenRefusal.Cause?)])
    func comparesTheIssuer(value: String, cause expected: TokenRefusal.Cause?) {
        let policy = TokenPolicy(issuers: ["https://issuer", "https://other"], audiences: [])
        #expect(cause(#"{"exp":1700003600,"iss":\#(value)}"#, policy) == expected)
        #expect(cause(#"{"exp":1700003600}"#, policy) == .issuer)
    }

    @Test(
        arguments: [
            (#""weir""#, nil), (#"["other","weir"]"#, nil), (#""other""#, .audience), (#"["other"]"#, .audience),
            ("[]", .audience), (#""weir2""#, .audience), (#""*""#, .audience), (#"{"weir":true}"#, .claims),
            ("null", .claims),
            ("[1]", .claims), (#"[["weir"]]"#, .claims), (#"["weir",null]"#, .claims),
        ] as [(String, TokenRefusal.Cause?)])
    func comparesTheAudience(value: String, cause expected: TokenRefusal.Cause?) {
        #expect(cause(#"{"exp":1700003600,"iss":"https://issuer","aud":\#(value)}"#) == expected)
        #expect(cause(#"{"exp":1700003600,"iss":"https://issuer"}"#) == .audience)
    }

    @Test(arguments: [
        #"{"iss":"https://issuer","aud":"weir","exp":1700003600,"sub":"abc","sub":"xyz"}"#,
        #"{"iss":"https://issuer","aud":"weir","exp":1,"exp":1700003600}"#,
        "{\"iss\":\"https://issuer\",\"aud\":\"weir\",\"exp\":1700003600,\"\\u0065xp\":1}",
        "[1]", "\"abc\"", "1", "null", "", "{", "{}{}", #"{"exp":1700003600"#, "{\"a\":\"\u{1}\"}",
    ])
    func refusesClaimsThatAreNoObjectOrRepeatAName(claims: String) {
        #expect(cause(claims) == .malformed)
    }

    @Test(
        arguments: [
            (#"{"alg":"ES256","alg":"none"}"#, .malformed), (#"{"alg":1}"#, .malformed), (#"{"kid":"ec"}"#, .malformed),
            ("[]", .malformed), (#"{"alg":"ES256","kid":1}"#, .malformed), (#"{"alg":"ES256","kid":null}"#, .malformed),
            (#"{"alg":"ES256","crit":["exp"],"exp":1}"#, .malformed), (#"{"alg":"ES256","crit":[]}"#, .malformed),
            (#"{"alg":"ES256","typ":"JOSE"}"#, .malformed), (#"{"alg":"ES256","typ":null}"#, .malformed),
            (#"{"alg":"ES256","typ":"dpop+jwt"}"#, .malformed), ("{\"alg\":\"\\u006eone\"}", .algorithm),
            (#"{"alg":["ES256"]}"#, .malformed),
        ] as [(String, TokenRefusal.Cause)])
    func refusesHeaders(header: String, expected: TokenRefusal.Cause) {
        let token = TestTokens.token(header: header, claims: TestTokens.claims, signature: [1, 2, 3])
        #expect(TestTokens.cause(token, keys) == expected)
    }

    @Test func refusesAKeyNameThatIsTooLong() {
        let long = String(repeating: "k", count: 257)
        #expect(cause(TestTokens.claims, header: ["kid": "\"\(long)\""]) == .malformed)
    }

    @Test(arguments: [
        "\"JWT\"", "\"jwt\"", "\"at+jwt\"", "\"AT+JWT\"", "\"application/at+jwt\"", "\"application/jwt\"",
    ])
    func acceptsTypes(type: String) {
        #expect(cause(TestTokens.claims, header: ["typ": type]) == nil)
    }

    @Test(arguments: [
        "", ".", "..", "...", "a", "a.b", "a.b.c.d", "a.b.c.d.e", "e30.e30.", ".e30.", "e30..", " . . ",
        "\u{0}.\u{0}.\u{0}", "%65%30.e30.e30", "é.é.é",
    ])
    func refusesTextsThatAreNoTokens(text: String) {
        #expect(TestTokens.cause(text, keys) == .malformed)
    }

    @Test func refusesOtherSpellingsOfBase64() throws {
        let token = TestTokens.ec.token(TestTokens.claims)
        let parts = token.split(separator: ".").map(String.init)
        #expect(TestTokens.cause(token, keys) == nil)
        for position in 0..<3 {
            for spelling in [
                "\(parts[position])=", "\(parts[position])==", " \(parts[position])", "\(parts[position])\n",
            ] {
                var changed = parts
                changed[position] = spelling
                #expect(TestTokens.cause(changed.joined(separator: "."), keys) != nil, "\(position) \(spelling)")
            }
        }
        // 64 bytes of a signature leave four bits after the last byte, which must be 0.
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
        let last = try #require(parts[2].last.flatMap { alphabet.firstIndex(of: $0) })
        #expect(last % 16 == 0)
        for bits in 1..<16 {
            let changed = parts[2].dropLast() + String(alphabet[last + bits])
            #expect(TestTokens.cause("\(parts[0]).\(parts[1]).\(changed)", keys) == .malformed)
        }
        let standard = parts[2].replacing("-", with: "+").replacing("_", with: "/")
        if standard != parts[2] {
            #expect(TestTokens.cause("\(parts[0]).\(parts[1]).\(standard)", keys) == .malformed)
        }
    }

    @Test func refusesTokensThatAreTooLarge() {
        let padding = String(repeating: "x", count: 13_000)
        #expect(cause(#"{"exp":1700003600,"iss":"https://issuer","aud":"weir","p":"\#(padding)"}"#) == .tooLarge)
    }

    /// What a refusal says to an operator holds control characters neither in the log nor on a terminal.
    @Test func showsTextsOfTokensWithoutControlCharacters() throws {
        let token = TestTokens.ec.token(TestTokens.claims, header: ["kid": "\"\\u001b[31m\\n\""])
        do throws(TokenRefusal) {
            _ = try TestTokens.check(token, keys)
            Issue.record("it is accepted")
        } catch {
            #expect(error.detail.utf8.allSatisfy { $0 >= 0x20 })
        }
    }
}
