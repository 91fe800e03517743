import JSON

/// A token in compact form (RFC 7515, 7.1) whose header was read and whose signature was not checked yet.
package struct SignedToken: Sendable {
    /// Longer ones are refused before they are looked at.
    package static let maximumBytes = 16 << 10
    /// Of `kid`, in bytes.
    package static let maximumKeyIDBytes = 256

    package let algorithm: SignatureAlgorithm
    package let keyID: String?
    /// What is signed: the first two parts as they are.
    let message: ArraySlice<UInt8>
    let signature: [UInt8]
    private let payload: ArraySlice<UInt8>

    package init(_ text: ArraySlice<UInt8>) throws(TokenRefusal) {
        guard text.count <= Self.maximumBytes else {
            throw TokenRefusal(.tooLarge, "it has \(text.count) bytes, at most \(Self.maximumBytes) are allowed")
        }
        let parts = text.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3 else {
            throw TokenRefusal(
                .malformed,
                parts.count == 5
                    ? "it is encrypted (JWE): only signed tokens are accepted"
                    : "it has \(parts.count) parts between dots; a signed token has three")
        }
        guard let header = Base64URL.decode(parts[0]) else {
            throw TokenRefusal(.malformed, "its header is not in canonical base64url without padding")
        }
        (algorithm, keyID) = try Self.read(header: header)
        guard let signature = Base64URL.decode(parts[2]) else {
            throw TokenRefusal(.malformed, "its signature is not in canonical base64url without padding")
        }
        self.signature = signature
        message = text[text.startIndex..<parts[1].endIndex]
        payload = parts[1]
    }

    /// The claims, which are true only if a key verifies ``signature``.
    func claims() throws(TokenRefusal) -> [UInt8] {
        guard let claims = Base64URL.decode(payload) else {
            throw TokenRefusal(.malformed, "its claims are not in canonical base64url without padding")
        }
        return claims
    }

    /// Keys that the header itself brings or points to (`jwk`, `jku`, `x5c`, `x5u`) are not looked at.
    private static func read(header: [UInt8]) throws(TokenRefusal) -> (SignatureAlgorithm, String?) {
        var algorithm: SignatureAlgorithm?
        var name: String?
        var keyID: String?
        try TokenJSON.read(header, "header") { (root) throws(TokenRefusal) in
            guard var members = root.members else { return }
            while let member = members.next() {
                if member.isNamed("alg") {
                    guard let text = member.value.string else {
                        throw TokenRefusal(.malformed, "alg in its header is no string")
                    }
                    algorithm = SignatureAlgorithm(text)
                    name = String(copying: text)
                } else if member.isNamed("kid") {
                    guard let text = member.value.string, text.count <= maximumKeyIDBytes else {
                        throw TokenRefusal(
                            .malformed, "kid in its header is no string of at most \(maximumKeyIDBytes) bytes")
                    }
                    keyID = String(copying: text)
                } else if member.isNamed("typ") {
                    guard let text = member.value.string, isAccepted(type: String(copying: text)) else {
                        throw TokenRefusal(.malformed, "typ in its header is neither JWT nor at+jwt")
                    }
                } else if member.isNamed("crit") {
                    throw TokenRefusal(.malformed, "its header has crit, and no extension is supported")
                }
            }
        }
        guard let name else { throw TokenRefusal(.malformed, "its header has no alg") }
        guard let algorithm else {
            let accepted = SignatureAlgorithm.allCases.map(\.rawValue).joined(separator: ", ")
            throw TokenRefusal(
                .algorithm, "it is signed with \(TokenRefusal.quoted(name)); accepted are \(accepted)")
        }
        return (algorithm, keyID)
    }

    /// Types are compared without case, with or without `application/` (RFC 7515, 4.1.9).
    private static func isAccepted(type: String) -> Bool {
        ["jwt", "at+jwt", "application/jwt", "application/at+jwt"].contains {
            $0.utf8.elementsEqual(type.lowercased().utf8)
        }
    }
}

/// Reads the objects of tokens and key sets, whose names must be unique.
enum TokenJSON {
    static func read(
        _ bytes: [UInt8], _ what: String, _ body: (borrowing JSONValue) throws(TokenRefusal) -> Void
    ) throws(TokenRefusal) {
        var parser = JSONParser()
        do {
            try parser.withDocument(bytes.span) { document in
                let root = document.root
                guard root.kind == .object else { throw TokenRefusal(.malformed, "its \(what) is no JSON object") }
                if root.repeatedMember != nil {
                    throw TokenRefusal(.malformed, "its \(what) repeats a name")
                }
                try body(root)
            }
        } catch let refusal as TokenRefusal {
            throw refusal
        } catch {
            throw TokenRefusal(.malformed, "its \(what) is no JSON: \(error)")
        }
    }
}

extension String {
    /// UTF-8, as a parser has checked it.
    package init(copying text: Span<UInt8>) {
        self = text.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
    }
}
