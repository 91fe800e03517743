import CZeroMQ

/// Tells what happens to the connections of a socket, on the socket's own thread.
package final class ZeroMQMonitor {
    /// What happened to a connection.
    package enum Event: Sendable, Hashable {
        /// Both ends know each other: messages flow.
        case connected
        /// It was closed, by either end.
        case disconnected
        /// It did not come about: nobody listens, or the network refuses.
        case failed
        /// The ends did not come to terms.
        case refused(Refusal)
    }

    /// Why ends did not come to terms.
    package enum Refusal: Sendable, Hashable, CustomStringConvertible {
        /// The other end closed the connection during the greeting, or it was no end of ZeroMQ.
        case closed
        /// One end encrypts and the other does not.
        case otherMechanism
        /// The ends have different keys.
        case otherKey
        /// The server turned the client's key away.
        case notAdmitted
        /// What came was no greeting.
        case malformed

        /// The reason in words.
        package var description: String {
            switch self {
            case .closed: "closed during the greeting"
            case .otherMechanism: "one end has a key and the other has none"
            case .otherKey: "the other end has another key"
            case .notAdmitted: "the key is not admitted"
            case .malformed: "the other end does not speak this protocol"
            }
        }
    }

    /// What events come through.
    package let socket: ZeroMQSocket
    private let watched: ZeroMQSocket

    /// Watches a socket; to be made before it connects or listens.
    package init(_ watched: ZeroMQSocket, in context: ZeroMQContext, name: String) throws(ZeroMQError) {
        let events =
            ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_CLOSED
            | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL
            | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH
        let endpoint = "inproc://monitor-\(name)"
        guard zmq_socket_monitor(watched.handle, endpoint, events) == 0 else { throw .last("zmq_socket_monitor") }
        self.watched = watched
        do {
            socket = try context.socket(.pair)
        } catch {
            zmq_socket_monitor(watched.handle, nil, 0)
            throw error
        }
        do {
            try socket.connect(endpoint)
        } catch {
            close()
            throw error
        }
    }

    /// The next event, `nil` when there is none.
    package func next() throws(ZeroMQError) -> Event? {
        while let parts = try socket.receive() {
            // 16 bits of event, 32 of value, both as the machine has them; then the address.
            guard parts.count == 2, parts[0].count == 6 else { continue }
            let event = parts[0].withUnsafeBytes { Int32($0.loadUnaligned(as: UInt16.self)) }
            let value = parts[0].withUnsafeBytes { $0.loadUnaligned(fromByteOffset: 2, as: Int32.self) }
            if let event = Self.event(event, value) { return event }
        }
        return nil
    }

    private static func event(_ event: Int32, _ value: Int32) -> Event? {
        switch event {
        case ZMQ_EVENT_HANDSHAKE_SUCCEEDED: return .connected
        case ZMQ_EVENT_DISCONNECTED: return .disconnected
        case ZMQ_EVENT_CLOSED: return .failed
        case ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL: return .refused(.closed)
        case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH: return .refused(.notAdmitted)
        case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL:
            switch value {
            case ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH: return .refused(.otherMechanism)
            case ZMQ_PROTOCOL_ERROR_ZMTP_CRYPTOGRAPHIC: return .refused(.otherKey)
            default: return .refused(.malformed)
            }
        default: return nil
        }
    }

    /// Stops watching; before the socket itself is closed.
    package func close() {
        zmq_socket_monitor(watched.handle, nil, 0)
        socket.close()
    }
}
