import COpenSSL

/// SHA-256 of bytes that come in pieces (FIPS 180-4), computed by OpenSSL's libcrypto.
///
/// One value serves many messages, one after the other: ``finish()`` leaves it ready for the next, and a small message then
/// costs no allocation but its digest. A libcrypto without SHA-256, or without memory for it, traps: nothing that comes
/// from outside leads there.
package struct SHA256: ~Copyable {
    /// The size of a digest in bytes.
    package static let byteCount = 32

    /// Owned by this value alone, which frees it.
    private let context: OpaquePointer

    /// Begins a message.
    package init() {
        guard let context = EVP_MD_CTX_new() else { Self.fail("EVP_MD_CTX_new") }
        self.context = context
        begin()
    }

    deinit { EVP_MD_CTX_free(context) }

    /// Adds bytes to the message.
    package mutating func update(_ bytes: RawSpan) {
        bytes.withUnsafeBytes { buffer in
            guard EVP_DigestUpdate(context, buffer.baseAddress, buffer.count) == 1 else {
                Self.fail("EVP_DigestUpdate")
            }
        }
    }

    /// Adds bytes to the message.
    package mutating func update(_ bytes: [UInt8]) { update(bytes.span.bytes) }

    /// Ends the message and begins the next.
    ///
    /// - Returns: the 32 bytes of the digest.
    package mutating func finish() -> [UInt8] {
        let digest = [UInt8](unsafeUninitializedCapacity: Self.byteCount) { buffer, count in
            var written: UInt32 = 0
            guard EVP_DigestFinal_ex(context, buffer.baseAddress, &written) == 1 else {
                Self.fail("EVP_DigestFinal_ex")
            }
            count = Int(written)
        }
        begin()
        return digest
    }

    /// The digest of one message.
    package static func digest(of bytes: RawSpan) -> [UInt8] {
        var hash = SHA256()
        hash.update(bytes)
        return hash.finish()
    }

    /// The digest of one message.
    package static func digest(of bytes: [UInt8]) -> [UInt8] { digest(of: bytes.span.bytes) }

    private func begin() {
        guard EVP_DigestInit_ex2(context, Self.algorithm.pointer, nil) == 1 else { Self.fail("EVP_DigestInit_ex2") }
    }

    /// Fetched once for the process: finding an algorithm costs more than hashing a small message with it.
    private static let algorithm = Algorithm()

    /// An `EVP_MD`, kept until the process ends.
    ///
    /// Sendable because libcrypto counts its references atomically and never
    /// changes a fetched algorithm.
    private struct Algorithm: @unchecked Sendable {
        let pointer: OpaquePointer

        init() {
            guard let pointer = EVP_MD_fetch(nil, "SHA256", nil) else { SHA256.fail("EVP_MD_fetch") }
            self.pointer = pointer
        }
    }

    private static func fail(_ call: String) -> Never {
        preconditionFailure("libcrypto cannot compute SHA-256: \(call), error \(ERR_peek_last_error())")
    }
}
