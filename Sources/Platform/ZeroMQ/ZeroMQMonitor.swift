import CZeroMQ

/// Reports events of a socket's connections, on the socket's thread.
package final class ZeroMQMonitor {
    package enum Event: Sendable, Hashable {
        /// The handshake succeeded: messages can be sent and received.
        case connected
        /// Either peer closed the connection.
        case disconnected
        /// No connection was made: the address does not accept connections, or cannot be reached.
        case failed
        /// The handshake failed.
        case refused(Refusal)
    }

    /// Why a handshake failed.
    package enum Refusal: Sendable, Hashable, CustomStringConvertible {
        /// The peer closed the connection during the handshake, or does not use ZeroMQ.
        case closed
        /// One peer encrypts and the other does not.
        case otherMechanism
        /// The peers have different keys.
        case otherKey
        /// The server rejected the client's key.
        case notAdmitted
        /// The peer's handshake is invalid.
        case malformed

        package var description: String {
            switch self {
            case .closed: "the peer closed the connection during the handshake"
            case .otherMechanism: "one peer has a key and the other has none"
            case .otherKey: "the peer has a different key"
            case .notAdmitted: "the key is not admitted"
            case .malformed: "the peer does not use this protocol"
            }
        }
    }

    /// Readable when there are events.
    package let socket: ZeroMQSocket
    private let watched: ZeroMQSocket

    /// Must be created before the socket connects or listens.
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

    /// Returns the next event, or `nil` if there is none now.
    package func next() throws(ZeroMQError) -> Event? {
        while let parts = try socket.receive() {
            // 16 bits of event and 32 of value, in the machine's byte order; then the address.
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

    /// Must be called before the monitored socket is closed.
    package func close() {
        zmq_socket_monitor(watched.handle, nil, 0)
        socket.close()
    }
}
