import CZeroMQ
import Glibc

/// A socket of libzmq: messages of one or more parts, never a part of one.
///
/// Not Sendable: it belongs to the thread that works with it, which closes it, too.
package final class ZeroMQSocket {
    /// What a socket does.
    package enum Kind: Sendable {
        /// Serves any number of peers; each message begins with the id of its peer.
        case router
        /// Speaks with one peer, in both directions at any time.
        case dealer
        /// Answers questions, one after the other.
        case reply
        /// Listens to what a monitor tells.
        case pair

        var number: Int32 {
            switch self {
            case .router: ZMQ_ROUTER
            case .dealer: ZMQ_DEALER
            case .reply: ZMQ_REP
            case .pair: ZMQ_PAIR
            }
        }
    }

    /// What became of a message to be sent.
    package enum Sending: Sendable {
        /// It is in the socket's queue.
        case queued
        /// The queue is full.
        case full
        /// There is no such peer (any more).
        case noPeer
    }

    let handle: UnsafeMutableRawPointer
    private var isClosed = false

    init(_ handle: UnsafeMutableRawPointer) { self.handle = handle }

    deinit { assert(isClosed, "a socket is closed by whoever made it") }

    /// Closes the socket; what is unsent is given up.
    package func close() {
        guard !isClosed else { return }
        isClosed = true
        var linger: Int32 = 0
        _ = zmq_setsockopt(handle, ZMQ_LINGER, &linger, MemoryLayout<Int32>.size)
        let code = zmq_close(handle)
        precondition(code == 0, "a socket is closed once")
    }

    /// Sets an option that is a number; traps where libzmq knows no such option or value.
    package func set(_ option: ZeroMQOption, _ value: Int32) {
        var value = value
        let code = zmq_setsockopt(handle, option.number, &value, MemoryLayout<Int32>.size)
        precondition(code == 0, "\(option) cannot be \(value)")
    }

    /// Sets the size of the largest message that is taken; a peer that sends a larger one is disconnected.
    package func setMaximumMessageSize(_ bytes: Int) {
        var value = Int64(bytes)
        let code = zmq_setsockopt(handle, ZMQ_MAXMSGSIZE, &value, MemoryLayout<Int64>.size)
        precondition(code == 0, "every size can be the largest")
    }

    /// Sets an option that is bytes.
    func set(_ number: Int32, bytes: [UInt8]) throws(ZeroMQError) {
        guard zmq_setsockopt(handle, number, bytes, bytes.count) == 0 else { throw .last("zmq_setsockopt") }
    }

    /// Listens at an endpoint.
    package func bind(_ endpoint: String) throws(ZeroMQError) {
        guard zmq_bind(handle, endpoint) == 0 else { throw .last("listen at \(endpoint)") }
    }

    /// Begins to connect to an endpoint.
    package func connect(_ endpoint: String) throws(ZeroMQError) {
        guard zmq_connect(handle, endpoint) == 0 else { throw .last("connect to \(endpoint)") }
    }

    /// Where the socket was last bound, with the port that the system chose.
    package func lastEndpoint() throws(ZeroMQError) -> String {
        var size = 1024
        let bytes = [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
            let code = zmq_getsockopt(handle, ZMQ_LAST_ENDPOINT, buffer.baseAddress, &size)
            // The size counts the NUL at the end.
            count = code == 0 ? max(size - 1, 0) : 0
        }
        guard !bytes.isEmpty else { throw .last("zmq_getsockopt") }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Sends a message of some parts, without waiting.
    package func send(_ parts: [[UInt8]]) throws(ZeroMQError) -> Sending {
        for (index, part) in parts.enumerated() {
            let flags = ZMQ_DONTWAIT | (index < parts.count - 1 ? ZMQ_SNDMORE : 0)
            var code = zmq_send(handle, part, part.count, flags)
            while code < 0, zmq_errno() == EINTR { code = zmq_send(handle, part, part.count, flags) }
            guard code < 0 else { continue }
            // Only the first part can fail so: the others follow it into the same queue.
            switch zmq_errno() {
            case EAGAIN: return .full
            case EHOSTUNREACH: return .noPeer
            default: throw .last("zmq_send")
            }
        }
        return .queued
    }

    /// Takes the next message that has come, `nil` when there is none.
    package func receive() throws(ZeroMQError) -> [[UInt8]]? {
        var parts: [[UInt8]] = []
        var message = zmq_msg_t()
        zmq_msg_init(&message)
        defer { zmq_msg_close(&message) }
        repeat {
            var code = zmq_msg_recv(&message, handle, ZMQ_DONTWAIT)
            while code < 0, zmq_errno() == EINTR { code = zmq_msg_recv(&message, handle, ZMQ_DONTWAIT) }
            guard code >= 0 else {
                guard zmq_errno() == EAGAIN else { throw .last("zmq_msg_recv") }
                // The parts of a message come together: it is the first that is not there.
                return nil
            }
            // Lent by the message until the next part; copied here.
            parts.append([UInt8](UnsafeRawBufferPointer(start: zmq_msg_data(&message), count: zmq_msg_size(&message))))
        } while zmq_msg_more(&message) != 0
        return parts
    }
}
