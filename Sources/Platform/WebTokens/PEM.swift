import COpenSSL

extension OpenSSLKey {
    /// The key of an X.509 certificate in PEM, whose own signature and validity do not count: its source is trusted.
    convenience init?(certificate pem: [UInt8]) {
        let pointer: OpaquePointer? = Self.reading(pem) { memory in
            // Without a callback OpenSSL would ask the terminal for the password of an encrypted one.
            guard let certificate = PEM_read_bio_X509(memory, nil, { _, _, _, _ in -1 }, nil) else { return nil }
            defer { X509_free(certificate) }
            return X509_get_pubkey(certificate)
        }
        self.init(owning: pointer)
    }

    /// A private key in PEM, without a password.
    convenience init?(privateKey pem: [UInt8]) {
        self.init(
            owning: Self.reading(pem) { memory in
                // Without this callback OpenSSL would ask the terminal for a password.
                PEM_read_bio_PrivateKey(memory, nil, { _, _, _, _ in -1 }, nil)
            })
    }

    /// The private key in PEM (PKCS #8), without a password.
    var privateKeyPEM: [UInt8]? {
        guard let memory = BIO_new(BIO_s_mem()) else { return nil }
        defer { BIO_free(memory) }
        guard PEM_write_bio_PrivateKey(memory, pointer, nil, nil, 0, nil, nil) == 1 else {
            ERR_clear_error()
            return nil
        }
        var bytes: UnsafeMutablePointer<CChar>?
        let count = COpenSSL_memory(memory, &bytes)
        guard count > 0, let bytes else { return nil }
        return UnsafeRawBufferPointer(start: bytes, count: count).map(\.self)
    }

    private static func reading(_ pem: [UInt8], _ read: (OpaquePointer) -> OpaquePointer?) -> OpaquePointer? {
        pem.withUnsafeBytes { buffer in
            guard let memory = BIO_new_mem_buf(buffer.baseAddress, Int32(clamping: buffer.count)) else { return nil }
            defer { BIO_free(memory) }
            return read(memory)
        }
    }
}
