import JSON

/// The algorithms of signatures that are accepted (RFC 7518, RFC 8037), by their names in the header of a token.
package enum SignatureAlgorithm: String, Sendable, Hashable, CaseIterable {
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    case rs256 = "RS256"
    /// ECDSA with P-256 and SHA-256.
    case es256 = "ES256"
    /// Ed25519.
    case edDSA = "EdDSA"
    /// HMAC with SHA-256: whoever can check a token can make one.
    case hs256 = "HS256"

    /// By bytes: names are case-sensitive.
    init?(_ name: Span<UInt8>) {
        for algorithm in Self.allCases where algorithm.rawValue.utf8.count == name.count {
            if algorithm.rawValue.utf8.span.hasSameBytes(as: name) {
                self = algorithm
                return
            }
        }
        return nil
    }
}
