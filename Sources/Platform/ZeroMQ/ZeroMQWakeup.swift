import CZeroMQ
import Glibc
import Synchronization

/// Lets a thread wait for sockets, and other threads wake it.
package final class ZeroMQWakeup: Sendable {
    let output: Int32
    private let input: Int32
    /// Whether the pipe holds a byte, so that it never holds more than one.
    private let isSignalled = Atomic(false)

    package init() throws(ZeroMQError) {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw ZeroMQError("pipe", code: errno) }
        (output, input) = (ends[0], ends[1])
        for end in ends {
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
        }
    }

    deinit {
        closeDescriptor(output)
        closeDescriptor(input)
    }

    /// Ends the current call of ``wait(for:)``, or the next one.
    package func wake() {
        guard !isSignalled.exchange(true, ordering: .sequentiallyConsistent) else { return }
        var byte: UInt8 = 1
        while write(input, &byte, 1) < 0, errno == EINTR {}
    }

    /// Blocks the thread until a socket is readable or ``wake()`` is called.
    ///
    /// A caller of `wake()` stores its data first; the waiting thread reads it after the wait.
    ///
    /// - Returns: for each socket whether it is readable.
    package func wait(for sockets: [ZeroMQSocket]) throws(ZeroMQError) -> [Bool] {
        var items = [zmq_pollitem_t(socket: nil, fd: output, events: Int16(ZMQ_POLLIN), revents: 0)]
        items += sockets.map { zmq_pollitem_t(socket: $0.handle, fd: 0, events: Int16(ZMQ_POLLIN), revents: 0) }
        while zmq_poll(&items, Int32(items.count), -1) < 0 {
            guard zmq_errno() == EINTR else { throw .last("zmq_poll") }
        }
        if items[0].revents != 0 {
            var byte: UInt8 = 0
            while read(output, &byte, 1) < 0, errno == EINTR {}
            isSignalled.store(false, ordering: .sequentiallyConsistent)
        }
        return items.dropFirst().map { $0.revents != 0 }
    }
}

/// Closes a descriptor outside of the class; an error cannot be handled.
private func closeDescriptor(_ descriptor: Int32) { _ = close(descriptor) }
