import JSON

/// The keys of an issuer, by name.
package struct KeySet: Sendable {
    /// More keys than any issuer has; a set with more is refused.
    package static let maximumKeys = 100

    package let keys: [VerificationKey]
    /// Why the others of the source are not used, for an operator.
    package let unused: [String]
    private let fingerprints: Set<KeyFingerprint>

    package init(_ keys: [VerificationKey], unused: [String] = []) {
        self.keys = keys
        self.unused = unused
        fingerprints = Set(keys.map(\.fingerprint))
    }

    package func contains(_ key: KeyFingerprint) -> Bool { fingerprints.contains(key) }

    /// The keys' names, for an operator.
    package var names: String {
        keys.isEmpty ? "none" : keys.map { TokenRefusal.quoted($0.id ?? "") }.joined(separator: ", ")
    }

    /// The key of a token.
    ///
    /// A token without `kid` is of the only key of its algorithm. A secret checks tokens whatever they name.
    ///
    /// - Returns: `nil` where no key has the token's name; a newer set may have one.
    package func find(for token: SignedToken) -> VerificationKey? {
        if let secret = keys.first, secret.algorithm == .hs256, keys.count == 1 { return secret }
        guard let id = token.keyID else {
            let fitting = keys.filter { $0.algorithm == token.algorithm }
            return fitting.count == 1 ? fitting[0] : nil
        }
        let named = keys.filter { $0.id.map { $0.utf8.elementsEqual(id.utf8) } ?? false }
        // Keys of different types may have one name (RFC 7517, 4.5).
        return named.first { $0.algorithm == token.algorithm } ?? named.first
    }

    /// The key of a token.
    ///
    /// - Throws: ``TokenRefusal/Cause/key`` where ``find(for:)`` has none.
    package func key(for token: SignedToken) throws(TokenRefusal) -> VerificationKey {
        if let key = find(for: token) { return key }
        guard let id = token.keyID else {
            let count = keys.count { $0.algorithm == token.algorithm }
            throw TokenRefusal(.key, "it names no key, and \(count) keys are for \(token.algorithm.rawValue)")
        }
        throw TokenRefusal(.key, "it names the key \(TokenRefusal.quoted(id)); known are \(names)")
    }
}

/// Why a document is no set of keys.
package struct KeySetError: Error, Sendable, Hashable, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}

extension KeySet {
    /// Reads a JWK set (RFC 7517, section 5).
    ///
    /// Keys that are not for the signatures accepted here are left out, as the RFC demands. A set may be empty: then its
    /// issuer has withdrawn all keys.
    package init(jwks document: [UInt8]) throws(KeySetError) {
        var keys: [VerificationKey] = []
        var unused: [String] = []
        try Self.read(document) { (root) throws(KeySetError) in
            guard var elements = root.member(named: "keys")?.elements else {
                throw KeySetError("it has no array \"keys\": it is no JWK set")
            }
            var number = 0
            while let element = elements.next() {
                number += 1
                guard number <= Self.maximumKeys else {
                    throw KeySetError("it has more than \(Self.maximumKeys) keys")
                }
                do throws(KeySetError) {
                    keys.append(try JSONWebKey(element).key())
                } catch {
                    unused.append("key \(number): \(error)")
                }
            }
        }
        self.init(keys, unused: unused)
    }

    /// Reads an object of certificates in PEM by key name, as Firebase publishes it.
    package init(certificates document: [UInt8]) throws(KeySetError) {
        var keys: [VerificationKey] = []
        var unused: [String] = []
        try Self.read(document) { (root) throws(KeySetError) in
            guard var members = root.members else { return }
            while let member = members.next() {
                guard keys.count + unused.count < Self.maximumKeys else {
                    throw KeySetError("it has more than \(Self.maximumKeys) certificates")
                }
                guard let text = member.value.string,
                    let key = OpenSSLKey(certificate: Array(copying: text)),
                    let usable = VerificationKey(.rs256, id: String(copying: member.name), key)
                else {
                    // The others count: one that was withdrawn must not stay because of one that is new.
                    unused.append("a member is no X.509 certificate in PEM of an RSA key of 2048 bits or more")
                    continue
                }
                keys.append(usable)
            }
        }
        self.init(keys, unused: unused)
    }

    private static func read(
        _ document: [UInt8], _ body: (borrowing JSONValue) throws(KeySetError) -> Void
    ) throws(KeySetError) {
        var parser = JSONParser()
        do {
            try parser.withDocument(document.span) { document in
                let root = document.root
                guard root.kind == .object else { throw KeySetError("it is no JSON object") }
                guard root.repeatedMember == nil else { throw KeySetError("it repeats a name") }
                try body(root)
            }
        } catch let error as KeySetError {
            throw error
        } catch {
            throw KeySetError("it is no JSON: \(error)")
        }
    }
}
