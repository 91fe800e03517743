import Dispatch
import Glibc
import Synchronization

/// Writes lines to a file descriptor, mostly standard error, from a queue of its own: one `write` a line.
///
/// Whoever logs never waits. While the descriptor takes nothing (a pipe whose reader stopped), lines gather up to
/// `capacity` bytes; what comes beyond is dropped and counted, and a line says how many once there is room again. Lines
/// still queued are lost if the process is killed; `flush` before it ends. The process must ignore `SIGPIPE`.
package final class BoundedLogSink: LogSink {
    private struct State {
        var lines: [[UInt8]] = []
        var bytes = 0
        var dropped = 0
        /// Whether a writer is on its way or at work; there is never more than one.
        var isWriting = false
    }

    private let descriptor: Int32
    private let capacity: Int
    private let notice: @Sendable (_ dropped: Int) -> [UInt8]
    private let state = Mutex(State())
    // A serial queue takes its thread outside the cooperative pool, so a blocked `write` holds up nobody else. At most
    // one job is on it, besides flushes.
    private let queue = DispatchQueue(label: "weir.log")

    /// Makes a sink.
    ///
    /// - Parameters:
    ///   - descriptor: where lines go; stays open and the caller's.
    ///   - capacity: the bytes that may wait, above 0; 1 MiB are some thousand lines, more than a burst at start or stop.
    ///   - notice: the line that tells of lines dropped.
    package init(
        descriptor: Int32 = STDERR_FILENO, capacity: Int = 1 << 20,
        notice: @escaping @Sendable (_ dropped: Int) -> [UInt8]
    ) {
        precondition(capacity > 0, "a queue has room")
        self.descriptor = descriptor
        self.capacity = capacity
        self.notice = notice
    }

    /// Makes a sink that tells of dropped lines in a format.
    package convenience init(descriptor: Int32 = STDERR_FILENO, capacity: Int = 1 << 20, format: LogFormat) {
        self.init(descriptor: descriptor, capacity: capacity) { dropped in
            LogLine(
                time: LogOutput.systemTime(), level: .warning, label: "log", message: "Log lines were dropped",
                metadata: [.count: .integer(dropped)]
            ).bytes(format, isColoured: false)
        }
    }

    /// Queues a line, or drops and counts it where there is no room.
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

    /// Waits until every line queued so far is written, or the time is over; `false` in that case.
    ///
    /// Blocks its thread: for the end of a program.
    @discardableResult
    package func flush(within limit: Duration) -> Bool {
        let done = DispatchSemaphore(value: 0)
        queue.async { done.signal() }
        let (seconds, attoseconds) = limit.components
        let nanoseconds = Int(seconds) * 1_000_000_000 + Int(attoseconds / 1_000_000_000)
        return done.wait(timeout: .now() + .nanoseconds(nanoseconds)) == .success
    }

    /// Writes until nothing is queued.
    ///
    /// Bytes count as queued until they are written, so that the bound holds.
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

    /// One `write` for the line; more only where the descriptor took a part of it.
    private func put(_ line: [UInt8]) {
        line.withUnsafeBytes { bytes in
            var rest = bytes[...]
            while !rest.isEmpty {
                // The pointer is used within this call alone.
                let count = Glibc.write(descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
                if count > 0 {
                    rest = rest.dropFirst(count)
                } else if count < 0, errno == EINTR {
                    continue
                } else if count < 0, errno == EAGAIN {
                    // Somebody made the descriptor non-blocking: wait for room in the kernel.
                    var room = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                    poll(&room, 1, -1)
                } else {
                    // Nobody is there to be told that the log cannot be written; the process goes on.
                    return
                }
            }
        }
    }
}
