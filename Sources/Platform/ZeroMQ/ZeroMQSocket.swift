import CZeroMQ
import Glibc

/// A socket of libzmq.
///
/// A message has one or more frames, which are sent and received together.
///
/// Not Sendable: only one thread uses and closes it.
package final class ZeroMQSocket {
    package enum Kind: Sendable {
        /// Any number of peers; the first frame of each message is the id of the peer.
        case router
        /// One peer; either may send at any time.
        case dealer
        /// Responds to requests, one after the other.
        case reply
        /// Receives a monitor's events.
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

    /// The result of ``send(_:)``.
    package enum SendResult: Sendable {
        /// The message is in the socket's queue.
        case queued
        /// The queue is full: the message was not sent.
        case full
        /// A router has no connection with the id: the message was not sent.
        case noPeer
    }

    let handle: UnsafeMutableRawPointer
    private var isClosed = false

    init(_ handle: UnsafeMutableRawPointer) { self.handle = handle }

    deinit { assert(isClosed, "the owner of a socket closes it") }

    /// Closes the socket; messages not yet sent are dropped.
    package func close() {
        guard !isClosed else { return }
        isClosed = true
        var linger: Int32 = 0
        _ = zmq_setsockopt(handle, ZMQ_LINGER, &linger, MemoryLayout<Int32>.size)
        let code = zmq_close(handle)
        precondition(code == 0, "a socket is closed only once")
    }

    /// Traps if libzmq rejects the value.
    package func set(_ option: ZeroMQOption, _ value: Int32) {
        var value = value
        let code = zmq_setsockopt(handle, option.number, &value, MemoryLayout<Int32>.size)
        precondition(code == 0, "libzmq rejects the value \(value) for \(option)")
    }

    /// A peer that sends a larger message is disconnected.
    package func setMaximumMessageSize(_ bytes: Int) {
        var value = Int64(bytes)
        let code = zmq_setsockopt(handle, ZMQ_MAXMSGSIZE, &value, MemoryLayout<Int64>.size)
        precondition(code == 0, "libzmq accepts every maximum size")
    }

    func set(_ number: Int32, bytes: [UInt8]) throws(ZeroMQError) {
        guard zmq_setsockopt(handle, number, bytes, bytes.count) == 0 else { throw .last("zmq_setsockopt") }
    }

    package func bind(_ endpoint: String) throws(ZeroMQError) {
        guard zmq_bind(handle, endpoint) == 0 else { throw .last("listen at \(endpoint)") }
    }

    /// Begins to connect, and returns at once.
    package func connect(_ endpoint: String) throws(ZeroMQError) {
        guard zmq_connect(handle, endpoint) == 0 else { throw .last("connect to \(endpoint)") }
    }

    /// The endpoint that the socket was last bound to, with the port that the system chose.
    package func lastEndpoint() throws(ZeroMQError) -> String {
        var size = 1024
        let bytes = [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
            let code = zmq_getsockopt(handle, ZMQ_LAST_ENDPOINT, buffer.baseAddress, &size)
            // The size includes the final NUL.
            count = code == 0 ? max(size - 1, 0) : 0
        }
        guard !bytes.isEmpty else { throw .last("zmq_getsockopt") }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Sends a message of these frames; does not block.
    package func send(_ frames: [[UInt8]]) throws(ZeroMQError) -> SendResult {
        for (index, frame) in frames.enumerated() {
            let flags = ZMQ_DONTWAIT | (index < frames.count - 1 ? ZMQ_SNDMORE : 0)
            var code = zmq_send(handle, frame, frame.count, flags)
            while code < 0, zmq_errno() == EINTR { code = zmq_send(handle, frame, frame.count, flags) }
            guard code < 0 else { continue }
            // Only the first frame can fail with these: the others follow it into the same queue.
            switch zmq_errno() {
            case EAGAIN: return .full
            case EHOSTUNREACH: return .noPeer
            default: throw .last("zmq_send")
            }
        }
        return .queued
    }

    /// Returns the frames of the next message, or `nil` if none has arrived.
    package func receive() throws(ZeroMQError) -> [[UInt8]]? {
        var frames: [[UInt8]] = []
        var message = zmq_msg_t()
        zmq_msg_init(&message)
        defer { zmq_msg_close(&message) }
        repeat {
            var code = zmq_msg_recv(&message, handle, ZMQ_DONTWAIT)
            while code < 0, zmq_errno() == EINTR { code = zmq_msg_recv(&message, handle, ZMQ_DONTWAIT) }
            guard code >= 0 else {
                guard zmq_errno() == EAGAIN else { throw .last("zmq_msg_recv") }
                // The frames of a message arrive together, so this was the first.
                return nil
            }
            // Copied: libzmq's bytes are valid until the next call.
            frames.append([UInt8](UnsafeRawBufferPointer(start: zmq_msg_data(&message), count: zmq_msg_size(&message))))
        } while zmq_msg_more(&message) != 0
        return frames
    }
}
