import CZeroMQ

/// A pair of keys of CURVE, in binary form.
package struct CurveKeys: Sendable {
    /// The size of a key in bytes.
    package static let byteCount = 32

    /// What peers know it by.
    package let publicKey: [UInt8]
    /// What it proves itself with.
    let secretKey: [UInt8]

    /// Makes the pair that belongs to 32 random bytes; other sizes trap.
    ///
    /// - Throws: `ENOTSUP` where libzmq was built without CURVE.
    package init(secret: [UInt8]) throws(ZeroMQError) {
        precondition(secret.count == Self.byteCount, "a key of CURVE has 32 bytes")
        // Z85: 40 characters and a NUL; libzmq makes a public key in that form alone.
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
    /// Has peers prove that they know this server's public key; who they are is asked of ``ZAPAuthenticator``.
    ///
    /// - Parameter domain: what the questions are asked under, not empty.
    package func serveCurve(_ keys: CurveKeys, domain: String) throws(ZeroMQError) {
        var isServer: Int32 = 1
        let code = zmq_setsockopt(handle, ZMQ_CURVE_SERVER, &isServer, MemoryLayout<Int32>.size)
        guard code == 0 else { throw .last("CURVE") }
        try set(ZMQ_CURVE_SECRETKEY, bytes: keys.secretKey)
        try set(ZMQ_ZAP_DOMAIN, bytes: Array(domain.utf8))
    }

    /// Encrypts, and speaks with nobody but the server that has this public key.
    package func useCurve(_ keys: CurveKeys, server: [UInt8]) throws(ZeroMQError) {
        try set(ZMQ_CURVE_SERVERKEY, bytes: server)
        try set(ZMQ_CURVE_PUBLICKEY, bytes: keys.publicKey)
        try set(ZMQ_CURVE_SECRETKEY, bytes: keys.secretKey)
    }
}
