import JSON

/// The members of a JWK (RFC 7517, RFC 7518 section 6, RFC 8037) that public keys have.
struct JSONWebKey {
    private var texts: [String: String] = [:]
    private var operations: [String]?
    private var isPrivate = false

    /// In bytes: the modulus of 8192 bits has 1366.
    private static let maximumText = 4096

    init(_ value: borrowing JSONValue) throws(KeySetError) {
        guard var members = value.members else { throw KeySetError("it is no object") }
        guard value.repeatedMember == nil else { throw KeySetError("it repeats a name") }
        while let member = members.next() {
            let name = String(copying: member.name)
            switch name {
            case "kty", "use", "alg", "kid", "crv", "n", "e", "x", "y":
                guard let text = member.value.string, text.count <= Self.maximumText else {
                    throw KeySetError("\(name) is no string of at most \(Self.maximumText) bytes")
                }
                texts[name] = String(copying: text)
            case "key_ops":
                guard var elements = member.value.elements, member.value.count <= 16 else {
                    throw KeySetError("key_ops is no array")
                }
                var found: [String] = []
                while let element = elements.next() {
                    guard let text = element.string else { throw KeySetError("key_ops has more than strings") }
                    found.append(String(copying: text))
                }
                operations = found
            case "d", "k": isPrivate = true
            default: break
            }
        }
    }

    /// The key for the one algorithm that type, curve and `alg` leave.
    func key() throws(KeySetError) -> VerificationKey {
        let type = texts["kty"] ?? ""
        guard !isPrivate else { throw KeySetError("it holds a secret or a private key (kty \(type))") }
        if let use = texts["use"], !use.utf8.elementsEqual("sig".utf8) {
            throw KeySetError("its use is \(TokenRefusal.quoted(use)), not sig")
        }
        if let operations, !operations.contains(where: { $0.utf8.elementsEqual("verify".utf8) }) {
            throw KeySetError("its key_ops do not allow verify")
        }
        let id = texts["kid"]
        if let id, id.utf8.count > SignedToken.maximumKeyIDBytes { throw KeySetError("its kid is too long") }
        let (algorithm, der) = try publicKey(type)
        if let named = texts["alg"], !named.utf8.elementsEqual(algorithm.rawValue.utf8) {
            throw KeySetError("its alg is \(TokenRefusal.quoted(named)), supported is \(algorithm.rawValue)")
        }
        guard let key = VerificationKey(algorithm, id: id, publicKey: der) else {
            throw KeySetError(
                algorithm == .rs256
                    ? "its modulus has fewer than \(VerificationKey.leastRSABits) bits, more than "
                        + "\(VerificationKey.greatestRSABits), or is none"
                    : "its point is not on the curve")
        }
        return key
    }

    private func publicKey(_ type: String) throws(KeySetError) -> (SignatureAlgorithm, [UInt8]) {
        let curve = texts["crv"] ?? ""
        switch type {
        case "RSA":
            let exponent = try bytes("e")
            // RSA needs an odd exponent above 1; longer ones make checks slow.
            guard exponent.count <= 4, let last = exponent.last, last & 1 == 1, exponent.count > 1 || last > 1 else {
                throw KeySetError("its exponent is none, or has more than 32 bits")
            }
            return (.rs256, DER.rsaKey(modulus: try bytes("n"), exponent: exponent))
        case "EC" where curve.utf8.elementsEqual("P-256".utf8):
            return (.es256, DER.p256Key(x: try bytes("x", count: 32), y: try bytes("y", count: 32)))
        case "OKP" where curve.utf8.elementsEqual("Ed25519".utf8):
            return (.edDSA, DER.ed25519Key(try bytes("x", count: 32)))
        default:
            throw KeySetError(
                "kty \(TokenRefusal.quoted(type)) with crv \(TokenRefusal.quoted(curve)) is not supported")
        }
    }

    private func bytes(_ name: String, count: Int? = nil) throws(KeySetError) -> [UInt8] {
        guard let bytes = texts[name].flatMap({ Base64URL.decode($0.utf8) }), !bytes.isEmpty,
            bytes.count == count ?? bytes.count
        else {
            throw KeySetError("\(name) is not in base64url\(count.map { " with \($0) bytes" } ?? "")")
        }
        return bytes
    }
}
