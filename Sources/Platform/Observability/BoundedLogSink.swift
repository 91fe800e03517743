import Dispatch
import Glibc
import Synchronization

/// Writes lines to a file descriptor, usually standard error, on a queue of its own, with one `write` for each line.
///
/// Logging never waits. While the descriptor is blocked (a pipe whose reader stopped), up to `capacity` bytes of lines
/// are queued; further lines are dropped and counted, and the count is logged later. Queued lines are lost if the
/// process is killed; call `flush` before it ends. The process must ignore `SIGPIPE`.
package final class BoundedLogSink: LogSink {
    private struct State {
        var lines: [[UInt8]] = []
        var bytes = 0
        var dropped = 0
        /// Whether a `drain` is scheduled or running; there is at most one.
        var isWriting = false
    }

    private let descriptor: Int32
    private let capacity: Int
    private let notice: @Sendable (_ dropped: Int) -> [UInt8]
    private let state = Mutex(State())
    // A serial queue has a thread outside the cooperative pool, so a blocked `write` does not block tasks. It has at
    // most one job, besides flushes.
    private let queue = DispatchQueue(label: "weir.log")

    /// - Parameters:
    ///   - descriptor: is not closed by the sink.
    ///   - capacity: the bytes that may wait, above 0; 1 MiB is several thousand lines, more than a burst at start or
    ///     stop.
    ///   - notice: makes the line that reports dropped lines.
    package init(
        descriptor: Int32 = STDERR_FILENO, capacity: Int = 1 << 20,
        notice: @escaping @Sendable (_ dropped: Int) -> [UInt8]
    ) {
        precondition(capacity > 0, "the capacity of a log sink must be above 0")
        self.descriptor = descriptor
        self.capacity = capacity
        self.notice = notice
    }

    package convenience init(descriptor: Int32 = STDERR_FILENO, capacity: Int = 1 << 20, format: LogFormat) {
        self.init(descriptor: descriptor, capacity: capacity) { dropped in
            LogLine(
                time: LogOutput.systemTime(), level: .warning, label: "log", message: "Log lines were dropped",
                metadata: [.count: .integer(dropped)]
            ).bytes(format, isColoured: false)
        }
    }

    /// Queues a line, or drops and counts it if there is no space.
    package func write(_ line: [UInt8]) {
        let mustStart = state.withLock { state in
            if state.bytes + line.count <= capacity {
                state.lines.append(line)
                state.bytes += line.count
            } else {
                state.dropped += 1
            }
            defer { state.isWriting = true }
            return !state.isWriting
        }
        if mustStart { queue.async { self.drain() } }
    }

    /// Waits until all queued lines are written; `false` on timeout.
    ///
    /// Blocks the thread: for the end of a program.
    @discardableResult
    package func flush(within limit: Duration) -> Bool {
        let done = DispatchSemaphore(value: 0)
        queue.async { done.signal() }
        let (seconds, attoseconds) = limit.components
        let nanoseconds = Int(seconds) * 1_000_000_000 + Int(attoseconds / 1_000_000_000)
        return done.wait(timeout: .now() + .nanoseconds(nanoseconds)) == .success
    }

    /// Writes until the queue is empty.
    ///
    /// Bytes count as queued until they are written.
    private func drain() {
        while true {
            let (lines, dropped) = state.withLock { state in
                let taken = (state.lines, state.dropped)
                state.lines = []
                state.dropped = 0
                if taken.0.isEmpty && taken.1 == 0 { state.isWriting = false }
                return taken
            }
            if lines.isEmpty && dropped == 0 { return }
            for line in lines {
                put(line)
                state.withLock { $0.bytes -= line.count }
            }
            if dropped > 0 { put(notice(dropped)) }
        }
    }

    /// Writes a line with one `write`, or more after a partial write.
    private func put(_ line: [UInt8]) {
        line.withUnsafeBytes { bytes in
            var rest = bytes[...]
            while !rest.isEmpty {
                // The pointer is used during the call only.
                let count = Glibc.write(descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
                if count > 0 {
                    rest = rest.dropFirst(count)
                } else if count < 0, errno == EINTR {
                    continue
                } else if count < 0, errno == EAGAIN {
                    // The descriptor is non-blocking: wait until it is writable.
                    var room = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                    poll(&room, 1, -1)
                } else {
                    // The error cannot be reported, since the log itself cannot be written.
                    return
                }
            }
        }
    }
}
