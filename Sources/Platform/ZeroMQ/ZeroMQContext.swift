import CZeroMQ
import Glibc

/// A context of libzmq: creates sockets, and sends and receives for them on a thread of its own.
///
/// Its owner closes it, after all its sockets.
///
/// `@unchecked Sendable`: libzmq allows the use of a context by any thread; the handle never changes.
package final class ZeroMQContext: @unchecked Sendable {
    private let handle: UnsafeMutableRawPointer

    package init() throws(ZeroMQError) {
        guard let handle = zmq_ctx_new() else { throw .last("zmq_ctx_new") }
        self.handle = handle
    }

    /// Creates a socket, which only one thread may use.
    package func socket(_ kind: ZeroMQSocket.Kind) throws(ZeroMQError) -> ZeroMQSocket {
        guard let socket = zmq_socket(handle, kind.number) else { throw .last("zmq_socket") }
        return ZeroMQSocket(socket)
    }

    /// Blocks until the context's sockets are closed, so it needs a dedicated thread.
    package func close() {
        while zmq_ctx_term(handle) != 0 {
            precondition(zmq_errno() == EINTR, "a context is closed only once")
        }
    }
}

/// A failed call of libzmq.
package struct ZeroMQError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The call and its subject.
    package let call: String
    /// The `errno` value.
    package let code: Int32

    package init(_ call: String, code: Int32) {
        self.call = call
        self.code = code
    }

    /// The error of the call that has just failed on this thread.
    static func last(_ call: String) -> ZeroMQError { ZeroMQError(call, code: zmq_errno()) }

    package var description: String { "\(call): \(String(cString: zmq_strerror(code)))" }
}
