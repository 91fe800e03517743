import COpenSSL
import Digest
import JSONText

/// A key that signs tokens: of the program's own for development, and of the test's issuers.
package struct SigningKey: Sendable {
    private enum Material {
        case asymmetric(OpenSSLKey)
        case secret([UInt8])
    }

    package let algorithm: SignatureAlgorithm
    /// `kid`; the key's thumbprint (RFC 7638) where none was given, `nil` for a secret.
    package let id: String?
    private let material: Material

    /// - Returns: `nil` for fewer than 32 bytes.
    package init?(secret: [UInt8]) {
        guard secret.count >= VerificationKey.leastSecretBytes else { return nil }
        algorithm = .hs256
        id = nil
        material = .secret(secret)
    }

    /// A private key in PEM; its type decides on the algorithm.
    ///
    /// - Returns: `nil` if it is no unencrypted key of RSA with 2048 bits or more, P-256 or Ed25519.
    package init?(pem: [UInt8], id: String? = nil) {
        guard let key = OpenSSLKey(privateKey: pem) else { return nil }
        self.init(key, id: id)
    }

    /// Makes a new key pair.
    ///
    /// - Returns: `nil` for ``SignatureAlgorithm/hs256``, and where OpenSSL has no random numbers.
    package init?(generating algorithm: SignatureAlgorithm, bits: Int = 2048, id: String? = nil) {
        let key: OpenSSLKey?
        switch algorithm {
        case .rs256: key = Self.generate("RSA") { EVP_PKEY_CTX_set_rsa_keygen_bits($0, Int32(clamping: bits)) }
        case .es256: key = Self.generate("EC") { EVP_PKEY_CTX_set_group_name($0, "prime256v1") }
        case .edDSA: key = Self.generate("ED25519") { _ in 1 }
        case .hs256: key = nil
        }
        guard let key else { return nil }
        self.init(key, id: id)
    }

    private init?(_ key: OpenSSLKey, id: String?) {
        guard let algorithm = SignatureAlgorithm.allCases.first(where: { VerificationKey($0, id: nil, key) != nil })
        else { return nil }
        self.algorithm = algorithm
        material = .asymmetric(key)
        guard let members = Self.members(of: key, algorithm) else { return nil }
        self.id = id ?? Base64URL.encode(SHA256.digest(of: Self.object(members)))
    }

    /// Signs claims.
    ///
    /// - Parameters:
    ///   - claims: a JSON object.
    ///   - header: further members of the header, or others in place of `alg`, `kid` and `typ`, each with its JSON.
    /// - Returns: the token; `nil` if OpenSSL cannot sign.
    package func token(claims: [UInt8], header: KeyValuePairs<String, String> = [:]) -> String? {
        var members: [(String, String)] = [("alg", "\"\(algorithm.rawValue)\""), ("typ", "\"JWT\"")]
        if let id {
            var writer = JSONWriter()
            writer.value(id)
            members.append(("kid", String(decoding: writer.take(), as: UTF8.self)))
        }
        for (name, value) in header {
            if let index = members.firstIndex(where: { $0.0.utf8.elementsEqual(name.utf8) }) {
                members[index].1 = value
            } else {
                members.append((name, value))
            }
        }
        let head = "{" + members.map { "\"\($0)\":\($1)" }.joined(separator: ",") + "}"
        let message = Base64URL.encode(Array(head.utf8)) + "." + Base64URL.encode(claims)
        return signature(of: Array(message.utf8)).map { message + "." + Base64URL.encode($0) }
    }

    /// The signature of a message in the form that tokens have.
    package func signature(of message: [UInt8]) -> [UInt8]? {
        switch material {
        case .secret(let secret): VerificationKey.hmac(message, secret)
        case .asymmetric(let key):
            if algorithm == .es256 {
                key.sign(message, digest: algorithm.digest).flatMap(DER.p256Signature)
            } else {
                key.sign(message, digest: algorithm.digest)
            }
        }
    }

    /// The public key as a JWK; `nil` for a secret.
    package var jwk: String? {
        guard case .asymmetric(let key) = material, let members = Self.members(of: key, algorithm) else { return nil }
        var writer = JSONWriter()
        writer.object { writer in
            for (name, value) in members {
                writer.name(name)
                writer.value(value)
            }
            if let id { writer.member("kid", id) }
            writer.member("alg", algorithm.rawValue)
            writer.member("use", "sig")
        }
        return String(decoding: writer.take(), as: UTF8.self)
    }

    /// The private key in PEM, without a password; `nil` for a secret.
    package var pem: [UInt8]? {
        guard case .asymmetric(let key) = material else { return nil }
        return key.privateKeyPEM
    }

    /// The public key as a `SubjectPublicKeyInfo`; `nil` for a secret.
    package var publicKey: [UInt8]? {
        guard case .asymmetric(let key) = material else { return nil }
        return key.publicKey
    }

    /// A set of the public keys.
    package static func jwks(_ keys: [SigningKey]) -> [UInt8] {
        Array("{\"keys\":[\(keys.compactMap(\.jwk).joined(separator: ","))]}".utf8)
    }

    private static func generate(_ type: String, _ configure: (OpaquePointer) -> Int32) -> OpenSSLKey? {
        guard let context = EVP_PKEY_CTX_new_from_name(nil, type, nil) else { return nil }
        defer { EVP_PKEY_CTX_free(context) }
        var key: OpaquePointer?
        guard EVP_PKEY_keygen_init(context) == 1, configure(context) > 0, EVP_PKEY_generate(context, &key) == 1 else {
            ERR_clear_error()
            return nil
        }
        return OpenSSLKey(owning: key)
    }

    /// The required members of the public key, in the order of their names (RFC 7638, 3.2).
    private static func members(of key: OpenSSLKey, _ algorithm: SignatureAlgorithm) -> [(String, String)]? {
        switch algorithm {
        case .rs256:
            guard let modulus = key.number(OSSL_PKEY_PARAM_RSA_N), let exponent = key.number(OSSL_PKEY_PARAM_RSA_E)
            else { return nil }
            return [("e", Base64URL.encode(exponent)), ("kty", "RSA"), ("n", Base64URL.encode(modulus))]
        case .es256:
            // The end of the uncompressed point.
            guard let point = key.publicKey?.suffix(64), point.count == 64 else { return nil }
            return [
                ("crv", "P-256"), ("kty", "EC"), ("x", Base64URL.encode(Array(point.prefix(32)))),
                ("y", Base64URL.encode(Array(point.suffix(32)))),
            ]
        case .edDSA:
            guard let point = key.publicKey?.suffix(32), point.count == 32 else { return nil }
            return [("crv", "Ed25519"), ("kty", "OKP"), ("x", Base64URL.encode(Array(point)))]
        case .hs256: return nil
        }
    }

    private static func object(_ members: [(String, String)]) -> [UInt8] {
        Array(("{" + members.map { "\"\($0)\":\"\($1)\"" }.joined(separator: ",") + "}").utf8)
    }
}

extension OpenSSLKey {
    /// A number of the key, big-endian.
    fileprivate func number(_ parameter: String) -> [UInt8]? {
        var number: OpaquePointer?
        guard EVP_PKEY_get_bn_param(pointer, parameter, &number) == 1, let number else {
            ERR_clear_error()
            return nil
        }
        defer { BN_free(number) }
        var bytes = [UInt8](repeating: 0, count: Int(BN_num_bits(number) + 7) / 8)
        BN_bn2bin(number, &bytes)
        return bytes
    }
}
