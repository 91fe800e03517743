import COpenSSL
import Digest

/// A key that checks signatures of one algorithm, and no other.
package struct VerificationKey: Sendable {
    private enum Material {
        case asymmetric(OpenSSLKey)
        case secret([UInt8])
    }

    /// Moduli below it can be factored.
    package static let leastRSABits = 2048
    /// A check takes longer with the square of it.
    package static let greatestRSABits = 8192
    /// As long as the digest (RFC 7518, 3.2).
    package static let leastSecretBytes = 32

    package let algorithm: SignatureAlgorithm
    /// `kid`: what tokens name it by.
    package let id: String?
    /// Of the algorithm, the name and the key: two keys with the same one are the same.
    package let fingerprint: KeyFingerprint
    private let material: Material

    /// An HMAC secret, which accepts tokens whatever key they name.
    package init?(secret: [UInt8]) {
        guard secret.count >= Self.leastSecretBytes else { return nil }
        self.init(.hs256, id: nil, .secret(secret), secret)
    }

    /// A `SubjectPublicKeyInfo`.
    ///
    /// - Returns: `nil` if the key is not of the algorithm, too short or too long.
    init?(_ algorithm: SignatureAlgorithm, id: String?, publicKey der: [UInt8]) {
        guard let key = OpenSSLKey(publicKey: der) else { return nil }
        self.init(algorithm, id: id, key)
    }

    /// - Returns: `nil` if the key is not of the algorithm, too short or too long.
    init?(_ algorithm: SignatureAlgorithm, id: String?, _ key: OpenSSLKey) {
        let fits =
            switch algorithm {
            case .rs256: key.isA("RSA") && (Self.leastRSABits...Self.greatestRSABits).contains(key.bits)
            case .es256: key.isA("EC") && key.groupName.map { $0.utf8.elementsEqual("prime256v1".utf8) } == true
            case .edDSA: key.isA("ED25519")
            case .hs256: false
            }
        guard fits, let der = key.publicKey else { return nil }
        self.init(algorithm, id: id, .asymmetric(key), der)
    }

    private init(_ algorithm: SignatureAlgorithm, id: String?, _ material: Material, _ bytes: [UInt8]) {
        self.algorithm = algorithm
        self.id = id
        self.material = material
        var hash = SHA256()
        hash.update(Array("\(algorithm.rawValue)\u{0}\(id.map { "=\($0)" } ?? "")\u{0}".utf8))
        hash.update(bytes)
        fingerprint = KeyFingerprint(digest: hash.finish())
    }

    /// Whether a signature, in the form that tokens have, is of this key.
    package func verifies(_ signature: [UInt8], of message: ArraySlice<UInt8>) -> Bool {
        switch material {
        case .asymmetric(let key):
            guard algorithm == .es256 else { return key.verifies(signature, of: message, digest: algorithm.digest) }
            // Two integers of 32 bytes (RFC 7518, 3.4); OpenSSL refuses those that are 0 or not below the group's order.
            guard signature.count == 64 else { return false }
            return key.verifies(DER.signature(signature), of: message, digest: algorithm.digest)
        case .secret(let secret):
            let expected = Self.hmac(message, secret)
            guard expected.count == signature.count else { return false }
            return CRYPTO_memcmp(expected, signature, expected.count) == 0
        }
    }

    /// HMAC-SHA-256.
    static func hmac(_ message: some Collection<UInt8>, _ secret: [UInt8]) -> [UInt8] {
        let message = Array(message)
        var code = [UInt8](repeating: 0, count: SHA256.byteCount)
        var count: UInt32 = 0
        guard HMAC(EVP_sha256(), secret, Int32(secret.count), message, message.count, &code, &count) != nil else {
            ERR_clear_error()
            return []
        }
        return code
    }
}

/// Identifies a key.
package struct KeyFingerprint: Sendable, Hashable {
    private let words: SIMD4<UInt64>

    /// Of 32 bytes.
    package init(digest: [UInt8]) {
        words = digest.withUnsafeBytes { $0.loadUnaligned(as: SIMD4<UInt64>.self) }
    }
}
