import COpenSSL

/// Incremental SHA-256 (FIPS 180-4) with OpenSSL's libcrypto.
///
/// One value can hash many messages: ``finish()`` starts the next one without an allocation. Traps if libcrypto does
/// not support SHA-256 or is out of memory; no input causes that.
package struct SHA256: ~Copyable {
    /// The size of a digest in bytes.
    package static let byteCount = 32

    private let context: OpaquePointer

    package init() {
        guard let context = EVP_MD_CTX_new() else { Self.fail("EVP_MD_CTX_new") }
        self.context = context
        begin()
    }

    deinit { EVP_MD_CTX_free(context) }

    package mutating func update(_ bytes: RawSpan) {
        bytes.withUnsafeBytes { buffer in
            guard EVP_DigestUpdate(context, buffer.baseAddress, buffer.count) == 1 else {
                Self.fail("EVP_DigestUpdate")
            }
        }
    }

    package mutating func update(_ bytes: [UInt8]) { update(bytes.span.bytes) }

    /// Returns the digest and begins the next message.
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

    package static func digest(of bytes: RawSpan) -> [UInt8] {
        var hash = SHA256()
        hash.update(bytes)
        return hash.finish()
    }

    package static func digest(of bytes: [UInt8]) -> [UInt8] { digest(of: bytes.span.bytes) }

    private func begin() {
        guard EVP_DigestInit_ex2(context, Self.algorithm.pointer, nil) == 1 else { Self.fail("EVP_DigestInit_ex2") }
    }

    /// Fetched once, because that costs more than hashing a small message.
    private static let algorithm = Algorithm()

    /// An `EVP_MD` that is never freed.
    ///
    /// Sendable because libcrypto never changes a fetched algorithm.
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

/// Bytes as lower-case hexadecimal digits, two for each byte.
package func hexadecimal(_ bytes: some Collection<UInt8>) -> String {
    let digits: StaticString = "0123456789abcdef"
    return String(unsafeUninitializedCapacity: 2 * bytes.count) { buffer in
        var position = 0
        for byte in bytes {
            buffer[position] = digits.utf8Start[Int(byte >> 4)]
            buffer[position + 1] = digits.utf8Start[Int(byte & 0xF)]
            position += 2
        }
        return position
    }
}
