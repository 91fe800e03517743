import JSON

/// What a token must say beside its signature.
package struct TokenPolicy: Sendable {
    /// One of them must be `iss`; empty: `iss` is not looked at.
    package var issuers: [String]
    /// One of them must be in `aud`; empty: `aud` is not looked at.
    package var audiences: [String]
    /// How many seconds clocks may differ.
    package var leeway: Double

    package init(issuers: [String] = [], audiences: [String] = [], leeway: Double = 60) {
        self.issuers = issuers
        self.audiences = audiences
        self.leeway = leeway
    }

    /// Checks a token with its key.
    ///
    /// - Parameters:
    ///   - now: the time in seconds since 1970.
    ///   - read: reads further claims, once these are true.
    /// - Returns: when it is valid, and what was read.
    package func check<Value>(
        _ token: SignedToken, with key: VerificationKey, at now: Double,
        reading read: (borrowing JSONValue) throws(TokenRefusal) -> Value
    ) throws(TokenRefusal) -> (validity: TokenValidity, value: Value) {
        guard token.algorithm == key.algorithm else {
            throw TokenRefusal(
                .algorithm, "its header says \(token.algorithm.rawValue), its key is for \(key.algorithm.rawValue)")
        }
        guard key.verifies(token.signature, of: token.message) else {
            throw TokenRefusal(.signature, "its signature is not that of the key \(Self.name(of: key))")
        }
        var result: (TokenValidity, Value)?
        try TokenJSON.read(token.claims(), "claims") { (root) throws(TokenRefusal) in
            let claims = try StandardClaims(root)
            try check(claims)
            let validity = try TokenValidity(claims, leeway: leeway)
            try validity.check(at: now)
            result = (validity, try read(root))
        }
        guard let result else { throw TokenRefusal(.malformed, "its claims are no JSON object") }
        return result
    }

    private func check(_ claims: StandardClaims) throws(TokenRefusal) {
        if !issuers.isEmpty {
            guard let issuer = claims.issuer else { throw TokenRefusal(.issuer, "it has no iss") }
            guard issuers.contains(where: { $0.utf8.elementsEqual(issuer.utf8) }) else {
                throw TokenRefusal(
                    .issuer, "its iss is \(TokenRefusal.quoted(issuer)); accepted is \(Self.list(issuers))")
            }
        }
        if !audiences.isEmpty {
            guard !claims.audiences.isEmpty else { throw TokenRefusal(.audience, "it has no aud") }
            let isMeant = claims.audiences.contains { audience in
                audiences.contains { $0.utf8.elementsEqual(audience.utf8) }
            }
            guard isMeant else {
                let found = claims.audiences.prefix(3).map(TokenRefusal.quoted).joined(separator: ", ")
                throw TokenRefusal(.audience, "its aud is \(found); accepted is \(Self.list(audiences))")
            }
        }
    }

    private static func list(_ texts: [String]) -> String { texts.map { "\"\($0)\"" }.joined(separator: " or ") }

    private static func name(of key: VerificationKey) -> String {
        key.id.map(TokenRefusal.quoted) ?? "without a name"
    }
}

/// From when to when a token is valid, leeway included.
package struct TokenValidity: Sendable, Hashable {
    /// In seconds since 1970.
    private let start: Double
    /// Exclusive; in seconds since 1970.
    package let end: Double
    /// `exp` as it was.
    private let expires: Double

    init(_ claims: borrowing StandardClaims, leeway: Double) throws(TokenRefusal) {
        guard let expires = claims.expires else { throw TokenRefusal(.claims, "it has no exp") }
        self.expires = expires
        end = expires + leeway
        start = max(claims.notBefore ?? 0, claims.issuedAt ?? 0) - leeway
    }

    /// - Parameter now: the time in seconds since 1970.
    package func check(at now: Double) throws(TokenRefusal) {
        guard now < end else {
            throw TokenRefusal(
                .expired, "it expired \(Int(now - expires)) seconds ago: exp is \(Int(expires)), now is \(Int(now))")
        }
        guard now >= start else {
            throw TokenRefusal(
                .notYetValid, "it is valid in \(Int((start - now).rounded(.up))) seconds: nbf or iat is in the future")
        }
    }
}

/// The claims of RFC 7519, section 4.1, that are looked at.
struct StandardClaims: Sendable {
    private(set) var issuer: String?
    private(set) var audiences: [String] = []
    private(set) var expires: Double?
    private(set) var notBefore: Double?
    private(set) var issuedAt: Double?

    /// More audiences than any token has.
    private static let maximumAudiences = 100
    /// The end of the year 9999: further times are mistakes, as milliseconds are.
    private static let latestTime = 253_402_300_799.0

    init(_ root: borrowing JSONValue) throws(TokenRefusal) {
        guard var members = root.members else { return }
        while let member = members.next() {
            if member.isNamed("iss") {
                guard let text = member.value.string else { throw TokenRefusal(.claims, "iss is no string") }
                issuer = String(copying: text)
            } else if member.isNamed("aud") {
                audiences = try Self.audiences(member.value)
            } else if member.isNamed("exp") {
                expires = try Self.time(member.value, "exp")
            } else if member.isNamed("nbf") {
                notBefore = try Self.time(member.value, "nbf")
            } else if member.isNamed("iat") {
                issuedAt = try Self.time(member.value, "iat")
            }
        }
    }

    private static func audiences(_ value: borrowing JSONValue) throws(TokenRefusal) -> [String] {
        if let text = value.string { return [String(copying: text)] }
        guard var elements = value.elements, value.count <= maximumAudiences else {
            throw TokenRefusal(.claims, "aud is neither a string nor an array of at most \(maximumAudiences) strings")
        }
        var audiences: [String] = []
        while let element = elements.next() {
            guard let text = element.string else { throw TokenRefusal(.claims, "aud has an element that is no string") }
            audiences.append(String(copying: text))
        }
        return audiences
    }

    private static func time(_ value: borrowing JSONValue, _ name: String) throws(TokenRefusal) -> Double {
        guard let seconds = value.double, (0...latestTime).contains(seconds) else {
            throw TokenRefusal(.claims, "\(name) is no time in seconds from 1970 to 9999")
        }
        return seconds
    }
}
