import CZeroMQ

/// Says who may come in: libzmq asks it for each connection to a server with CURVE (ZeroMQ RFC 27, ZAP).
///
/// It lives on the thread of the server, which answers when ``socket`` has something.
package final class ZAPAuthenticator {
    /// What questions come through.
    package let socket: ZeroMQSocket
    private let admitted: [UInt8]

    /// Opens the door of a context to those who have one key; to be made before the server listens.
    ///
    /// - Parameter publicKey: the public key of whoever may come in.
    package init(_ context: ZeroMQContext, admitting publicKey: [UInt8]) throws(ZeroMQError) {
        socket = try context.socket(.reply)
        admitted = publicKey
        do {
            try socket.bind("inproc://zeromq.zap.01")
        } catch {
            socket.close()
            throw error
        }
    }

    /// Answers what was asked; how many were turned away.
    package func answer() throws(ZeroMQError) -> Int {
        var refused = 0
        while let question = try socket.receive() {
            // Version, number, domain, address, identity, mechanism, and the client's key.
            let isAdmitted =
                question.count == 7 && question[5] == Array("CURVE".utf8) && isEqual(question[6], admitted)
            if !isAdmitted { refused += 1 }
            let number = question.count > 1 ? question[1] : []
            let status = isAdmitted ? ("200", "OK") : ("400", "the client's key is another")
            _ = try socket.send([
                Array("1.0".utf8), number, Array(status.0.utf8), Array(status.1.utf8), [], [],
            ])
        }
        return refused
    }

    /// Takes as long whatever the keys are.
    private func isEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        guard left.count == right.count else { return false }
        return zip(left, right).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
    }

    /// Closes the door.
    package func close() { socket.close() }
}
