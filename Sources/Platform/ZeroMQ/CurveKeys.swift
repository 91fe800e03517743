import CZeroMQ

/// A CURVE key pair, in binary form.
package struct CurveKeys: Sendable {
    /// The size of a key in bytes.
    package static let byteCount = 32

    package let publicKey: [UInt8]
    let secretKey: [UInt8]

    /// Derives the key pair of 32 random bytes; other sizes trap.
    ///
    /// - Throws: `ENOTSUP` where libzmq was built without CURVE.
    package init(secret: [UInt8]) throws(ZeroMQError) {
        precondition(secret.count == Self.byteCount, "a CURVE key has 32 bytes")
        // Z85, 40 characters and a NUL: libzmq derives public keys in that form only.
        var secretText = [CChar](repeating: 0, count: 41)
        var publicText = [CChar](repeating: 0, count: 41)
        var publicKey = [UInt8](repeating: 0, count: Self.byteCount)
        guard zmq_z85_encode(&secretText, secret, secret.count) != nil else { throw .last("zmq_z85_encode") }
        guard zmq_curve_public(&publicText, secretText) == 0 else { throw .last("zmq_curve_public") }
        guard zmq_z85_decode(&publicKey, publicText) != nil else { throw .last("zmq_z85_decode") }
        self.publicKey = publicKey
        secretKey = secret
    }
}

extension ZeroMQSocket {
    /// Makes this a CURVE server: clients must know its public key, and a ``ZAPAuthenticator`` decides about theirs.
    ///
    /// - Parameter domain: the domain of the authentication requests, not empty.
    package func serveCurve(_ keys: CurveKeys, domain: String) throws(ZeroMQError) {
        var isServer: Int32 = 1
        let code = zmq_setsockopt(handle, ZMQ_CURVE_SERVER, &isServer, MemoryLayout<Int32>.size)
        guard code == 0 else { throw .last("CURVE") }
        try set(ZMQ_CURVE_SECRETKEY, bytes: keys.secretKey)
        try set(ZMQ_ZAP_DOMAIN, bytes: Array(domain.utf8))
    }

    /// Makes this a CURVE client, which connects only to the server with this public key.
    package func useCurve(_ keys: CurveKeys, server: [UInt8]) throws(ZeroMQError) {
        try set(ZMQ_CURVE_SERVERKEY, bytes: server)
        try set(ZMQ_CURVE_PUBLICKEY, bytes: keys.publicKey)
        try set(ZMQ_CURVE_SECRETKEY, bytes: keys.secretKey)
    }
}
