import CGnuTLS
import CMicrohttpd
import Glibc

/// A certificate with its key, as GnuTLS uses them for sessions.
final class TLSCredentials: @unchecked Sendable {
    // Unchecked: immutable once initialized, and GnuTLS allows sessions on several threads to share such credentials.
    private let credentials: gnutls_certificate_credentials_t
    /// When the certificate expires, in seconds since 1970.
    let expiration: Int
    /// From when the certificate is valid, in seconds since 1970.
    let activation: Int

    struct Failure: Error {
        let reason: String
    }

    /// - Throws: ``Failure`` unless both are PEM and belong to each other.
    init(certificate: [UInt8], key: [UInt8]) throws(Failure) {
        var allocated: gnutls_certificate_credentials_t?
        guard gnutls_certificate_allocate_credentials(&allocated) == 0, let allocated else {
            throw Failure(reason: "no memory")
        }
        var (certificate, key) = (certificate, key)
        let code = certificate.withUnsafeMutableBufferPointer { certificate in
            key.withUnsafeMutableBufferPointer { key in
                var certificate = gnutls_datum_t(data: certificate.baseAddress, size: UInt32(certificate.count))
                var key = gnutls_datum_t(data: key.baseAddress, size: UInt32(key.count))
                return gnutls_certificate_set_x509_key_mem(allocated, &certificate, &key, GNUTLS_X509_FMT_PEM)
            }
        }
        guard code >= 0 else {
            gnutls_certificate_free_credentials(allocated)
            throw Failure(reason: String(cString: gnutls_strerror(code)))
        }
        credentials = allocated
        var activation = 0
        expiration = CGnuTLS_validity(allocated, &activation)
        self.activation = activation
    }

    deinit { gnutls_certificate_free_credentials(credentials) }

    /// Uses these credentials for the session of a connection, in place of those that the daemon was started with.
    ///
    /// Called before the handshake; the session may use them until it ends.
    ///
    /// - Returns: `false` if there is no memory for it.
    func use(for connection: OpaquePointer) -> Bool {
        guard let session = CMicrohttpd_tls_session(connection) else { return false }
        return gnutls_credentials_set(
            OpaquePointer(session), GNUTLS_CRD_CERTIFICATE, UnsafeMutableRawPointer(credentials)) == 0
    }
}
