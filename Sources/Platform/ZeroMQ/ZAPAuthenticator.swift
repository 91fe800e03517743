import CZeroMQ

/// Admits clients of CURVE servers by their public key: libzmq asks it about each connection (ZeroMQ RFC 27, ZAP).
///
/// It belongs to the server's thread, which calls ``handleRequests()`` when ``socket`` is readable.
package final class ZAPAuthenticator {
    package let socket: ZeroMQSocket
    private let admittedKeys: [[UInt8]]

    /// Must be created before a server of the context listens.
    ///
    /// - Parameter publicKeys: the public keys of the clients to admit.
    package init(_ context: ZeroMQContext, admitting publicKeys: [[UInt8]]) throws(ZeroMQError) {
        socket = try context.socket(.reply)
        admittedKeys = publicKeys
        do {
            try socket.bind("inproc://zeromq.zap.01")
        } catch {
            socket.close()
            throw error
        }
    }

    /// Responds to the requests received so far; returns how many clients were rejected.
    package func handleRequests() throws(ZeroMQError) -> Int {
        var rejected = 0
        while let request = try socket.receive() {
            // Version, number, domain, address, identity, mechanism, and the client's key.
            let isAdmitted =
                request.count == 7 && request[5] == Array("CURVE".utf8)
                && admittedKeys.contains { isEqual(request[6], $0) }
            if !isAdmitted { rejected += 1 }
            let number = request.count > 1 ? request[1] : []
            let status = isAdmitted ? ("200", "OK") : ("400", "the client's key is not admitted")
            _ = try socket.send([
                Array("1.0".utf8), number, Array(status.0.utf8), Array(status.1.utf8), [], [],
            ])
        }
        return rejected
    }

    /// Compares in constant time.
    private func isEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        guard left.count == right.count else { return false }
        return zip(left, right).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
    }

    package func close() { socket.close() }
}
