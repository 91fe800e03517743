import JSON
import Testing
import WebTokens

/// Keys and tokens of tests; keys are made once, since RSA keys take long.
enum TestTokens {
    /// The time that tests say it is.
    static let now = 1_700_000_000.0

    static let rsa = SigningKey(generating: .rs256, id: "rsa")!
    static let otherRSA = SigningKey(generating: .rs256, id: "rsa")!
    static let ec = SigningKey(generating: .es256, id: "ec")!
    static let ed = SigningKey(generating: .edDSA, id: "ed")!
    static let secret = SigningKey(secret: Array("0123456789abcdef0123456789abcdef".utf8))!

    static let policy = TokenPolicy(issuers: ["https://issuer"], audiences: ["weir"], leeway: 60)

    /// Claims that every check accepts.
    static let claims = #"{"iss":"https://issuer","aud":"weir","sub":"abc","exp":1700003600}"#

    /// A token whose parts are as given.
    static func token(header: String, claims: String, signature: [UInt8]) -> String {
        [Array(header.utf8), Array(claims.utf8), signature].map { Base64URL.encode($0) }.joined(separator: ".")
    }

    /// The verification keys of signing keys, by way of their JWK set.
    static func set(_ keys: SigningKey...) throws -> KeySet { try KeySet(jwks: SigningKey.jwks(keys)) }

    /// Checks a token as a server does; the subject of its claims.
    static func check(
        _ token: String, _ keys: KeySet, _ policy: TokenPolicy = policy, at now: Double = now
    ) throws(TokenRefusal) -> String {
        let signed = try SignedToken(Array(token.utf8)[...])
        let key = try keys.key(for: signed)
        return try policy.check(signed, with: key, at: now) { (root) throws(TokenRefusal) in
            guard let text = root.member(named: "sub")?.string else { return "" }
            return String(copying: text)
        }.value
    }

    /// Why a token is refused; `nil` where it is accepted.
    static func cause(
        _ token: String, _ keys: KeySet, _ policy: TokenPolicy = policy, at now: Double = now
    ) -> TokenRefusal.Cause? {
        do throws(TokenRefusal) {
            _ = try check(token, keys, policy, at: now)
            return nil
        } catch {
            return error.cause
        }
    }
}

extension SigningKey {
    /// A token with claims in JSON.
    func token(_ claims: String, header: KeyValuePairs<String, String> = [:]) -> String {
        token(claims: Array(claims.utf8), header: header)!
    }
}
