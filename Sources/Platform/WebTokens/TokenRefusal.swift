/// Why a token is refused.
package struct TokenRefusal: Error, Sendable, CustomStringConvertible {
    /// What a client is told; stable.
    package enum Cause: String, Sendable, Hashable, CaseIterable {
        /// The request has no bearer token.
        case missing = "token_missing"
        /// It is no signed token: three parts in base64url, of which the first two are JSON objects.
        case malformed = "token_malformed"
        /// It is longer than any token may be.
        case tooLarge = "token_too_large"
        /// Its algorithm is not accepted, or not the key's.
        case algorithm = "token_algorithm"
        /// No key with its `kid` is known.
        case key = "token_key"
        /// The signature is not of its key.
        case signature = "token_signature"
        /// Its `exp` has passed.
        case expired = "token_expired"
        /// Its `nbf` or `iat` is in the future.
        case notYetValid = "token_not_yet_valid"
        /// Another issuer made it.
        case issuer = "token_issuer"
        /// It is for another audience.
        case audience = "token_audience"
        /// A claim is missing, or is of another type or form than it must have.
        case claims = "token_claims"
    }

    package let cause: Cause
    /// For an operator: names what was found, and neither the subject nor the token.
    package let detail: String

    package init(_ cause: Cause, _ detail: String) {
        self.cause = cause
        self.detail = detail
    }

    package var description: String { "\(cause.rawValue): \(detail)" }
}

extension TokenRefusal {
    /// A text of the token, cut and without control characters, so that it can be shown.
    static func quoted(_ text: String) -> String {
        let shown = text.unicodeScalars.prefix(80).map { $0.value < 0x20 || $0.value == 0x7F ? "?" : Character($0) }
        return "\"\(String(shown))\(text.unicodeScalars.count > 80 ? "…" : "")\""
    }
}
