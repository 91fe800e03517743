import CZeroMQ

/// What sockets are made in; its own thread sends and receives for them.
///
/// Whoever makes it closes it, after every socket.
///
/// `@unchecked Sendable`: libzmq lets any thread use a context; the handle never changes.
package final class ZeroMQContext: @unchecked Sendable {
    private let handle: UnsafeMutableRawPointer

    /// Starts a context.
    package init() throws(ZeroMQError) {
        guard let handle = zmq_ctx_new() else { throw .last("zmq_ctx_new") }
        self.handle = handle
    }

    /// Makes a socket; it is used by one thread at a time.
    package func socket(_ kind: ZeroMQSocket.Kind) throws(ZeroMQError) -> ZeroMQSocket {
        guard let socket = zmq_socket(handle, kind.number) else { throw .last("zmq_socket") }
        return ZeroMQSocket(socket)
    }

    /// Ends the context; blocks until its sockets are closed, so it belongs on a thread of its own.
    package func close() {
        while zmq_ctx_term(handle) != 0 {
            precondition(zmq_errno() == EINTR, "a context is closed once")
        }
    }
}
