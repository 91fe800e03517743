import COpenSSL

/// A key of OpenSSL, freed with its last reference.
///
/// Sendable because nothing changes the key after it was made, and OpenSSL counts references and caches atomically.
final class OpenSSLKey: @unchecked Sendable {
    let pointer: OpaquePointer

    /// Takes ownership.
    init?(owning pointer: OpaquePointer?) {
        guard let pointer else {
            // What failed is left in a queue of the thread, where the next failure would seem to have this cause.
            ERR_clear_error()
            return nil
        }
        self.pointer = pointer
    }

    /// A `SubjectPublicKeyInfo`; points must be on their curve.
    convenience init?(publicKey der: [UInt8]) {
        self.init(
            owning: der.withUnsafeBufferPointer { buffer in
                var start = buffer.baseAddress
                return d2i_PUBKEY(nil, &start, buffer.count)
            })
    }

    deinit { EVP_PKEY_free(pointer) }

    var bits: Int { Int(EVP_PKEY_get_bits(pointer)) }

    func isA(_ type: String) -> Bool { EVP_PKEY_is_a(pointer, type) == 1 }

    /// The name of an elliptic curve's group.
    var groupName: String? {
        var name = [CChar](repeating: 0, count: 64)
        var count = 0
        guard EVP_PKEY_get_group_name(pointer, &name, name.count, &count) == 1 else {
            ERR_clear_error()
            return nil
        }
        return String(decoding: name.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// The public key as a `SubjectPublicKeyInfo`.
    var publicKey: [UInt8]? {
        var bytes: UnsafeMutablePointer<UInt8>?
        let count = i2d_PUBKEY(pointer, &bytes)
        guard count > 0, let bytes else { return nil }
        defer { CRYPTO_free(bytes, #file, #line) }
        return Array(UnsafeBufferPointer(start: bytes, count: Int(count)))
    }

    /// Whether a signature in the form of OpenSSL is this key's.
    func verifies(_ signature: some Collection<UInt8>, of message: some Collection<UInt8>, digest: OpaquePointer?)
        -> Bool
    {
        guard let context = EVP_MD_CTX_new() else { return false }
        defer { EVP_MD_CTX_free(context) }
        guard EVP_DigestVerifyInit(context, nil, digest, nil, pointer) == 1 else {
            ERR_clear_error()
            return false
        }
        let (signature, message) = (Array(signature), Array(message))
        let isValid = EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
        if !isValid { ERR_clear_error() }
        return isValid
    }

    /// - Returns: `nil` if OpenSSL cannot sign with this key.
    func sign(_ message: [UInt8], digest: OpaquePointer?) -> [UInt8]? {
        guard let context = EVP_MD_CTX_new() else { return nil }
        defer { EVP_MD_CTX_free(context) }
        var count = 0
        guard EVP_DigestSignInit(context, nil, digest, nil, pointer) == 1,
            EVP_DigestSign(context, nil, &count, message, message.count) == 1
        else {
            ERR_clear_error()
            return nil
        }
        var signature = [UInt8](repeating: 0, count: count)
        guard EVP_DigestSign(context, &signature, &count, message, message.count) == 1 else {
            ERR_clear_error()
            return nil
        }
        return Array(signature.prefix(count))
    }
}

extension SignatureAlgorithm {
    /// The digest for OpenSSL; Ed25519 has its own.
    var digest: OpaquePointer? { self == .edDSA ? nil : EVP_sha256() }
}
