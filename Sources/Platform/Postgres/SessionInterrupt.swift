import Glibc
import Synchronization

/// Ends whatever a session waits for, from another thread: it shuts the session's socket down, after which the session is lost.
///
/// libpq's calls wait without a limit, and a server that is suspended keeps its connections open.
package final class SessionInterrupt: Sendable {
    private struct State {
        /// Counts the calls that use the session.
        var last = 0
        /// The call that uses it now.
        var current: Int?
        /// Whether that one is to end.
        var isRequested = false
        /// A duplicate of the session's socket: libpq closes its own when the connection breaks, and another thread's file may
        /// have the number by then.
        var socket: Int32?
    }

    private let state = Mutex(State())

    package init() {}

    // MARK: On the session's thread

    /// Gets each socket that the session has, before it waits.
    func follow(_ socket: Int32) throws(PostgresError) {
        let duplicate = fcntl(socket, F_DUPFD_CLOEXEC, 0)
        guard duplicate >= 0 else {
            throw PostgresError(
                message: "a socket cannot be duplicated: \(String(cString: strerror(errno)))", isConnectionLost: true)
        }
        replace(duplicate)
    }

    /// The session has ended, and with it the connection, which the duplicate keeps open.
    func forget() { replace(nil) }

    private func replace(_ socket: Int32?) {
        let old = state.withLock { state in
            let old = state.socket
            state.socket = socket
            Self.shutDown(state)
            return old
        }
        if let old { close(old) }
    }

    // MARK: Calls

    /// A call begins; one at a time.
    ///
    /// - Returns: its number, for ``request(_:)``.
    func begin() -> Int {
        state.withLock { state in
            precondition(state.current == nil, "a session has one call at a time")
            state.last += 1
            state.current = state.last
            return state.last
        }
    }

    /// Ends what a call waits for, and what it begins to wait for later; without effect once it has ended.
    func request(_ call: Int) {
        state.withLock { state in
            guard state.current == call else { return }
            state.isRequested = true
            Self.shutDown(state)
        }
    }

    /// The call has ended.
    ///
    /// - Returns: whether it was to end, so that its session is of no use.
    func end() -> Bool {
        state.withLock { state in
            defer { state.isRequested = false }
            state.current = nil
            return state.isRequested
        }
    }

    /// Under the lock, so that the duplicate is not closed meanwhile.
    private static func shutDown(_ state: State) {
        // Fails for a socket that is not connected, or not any more; nothing waits for such a one for long.
        if state.isRequested, let socket = state.socket { shutdown(socket, Int32(SHUT_RDWR)) }
    }
}
