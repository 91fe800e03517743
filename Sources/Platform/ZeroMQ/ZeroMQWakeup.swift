import CZeroMQ
import Glibc
import Synchronization

/// Wakes a thread that waits for sockets.
package final class ZeroMQWakeup: Sendable {
    let output: Int32
    private let input: Int32
    /// Whether the pipe holds a byte, so that it never holds more than one.
    private let isRung = Atomic(false)

    /// Makes a bell; it lives until nobody holds it.
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

    /// Ends the wait that is under way, or the next one at once.
    package func ring() {
        guard !isRung.exchange(true, ordering: .sequentiallyConsistent) else { return }
        var byte: UInt8 = 1
        while write(input, &byte, 1) < 0, errno == EINTR {}
    }

    /// Waits until a socket has something to read or somebody rings.
    ///
    /// Blocks its thread, so it belongs on one of its own. Whoever rings says what is there before; whoever waits looks
    /// afterwards.
    ///
    /// - Returns: for each socket whether it has something.
    package func wait(for sockets: [ZeroMQSocket]) throws(ZeroMQError) -> [Bool] {
        var items = [zmq_pollitem_t(socket: nil, fd: output, events: Int16(ZMQ_POLLIN), revents: 0)]
        items += sockets.map { zmq_pollitem_t(socket: $0.handle, fd: 0, events: Int16(ZMQ_POLLIN), revents: 0) }
        while zmq_poll(&items, Int32(items.count), -1) < 0 {
            guard zmq_errno() == EINTR else { throw .last("zmq_poll") }
        }
        if items[0].revents != 0 {
            var byte: UInt8 = 0
            while read(output, &byte, 1) < 0, errno == EINTR {}
            isRung.store(false, ordering: .sequentiallyConsistent)
        }
        return items.dropFirst().map { $0.revents != 0 }
    }
}

/// Closes a descriptor; nothing can be done about one that does not close.
private func closeDescriptor(_ descriptor: Int32) { _ = close(descriptor) }
