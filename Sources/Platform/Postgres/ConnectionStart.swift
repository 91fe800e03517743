import CPostgres
import Glibc

/// Completes a connection attempt by polling instead of one blocking call of libpq, whose errors would lack the SQLSTATE.
struct ConnectionStart {
    private let handle: OpaquePointer
    private let database: String

    init(_ handle: OpaquePointer, database: String) {
        self.handle = handle
        self.database = database
    }

    /// - Parameter interrupt: gets the sockets, of which there may be several before one of the hosts accepts.
    func run(timeout: Duration, _ interrupt: SessionInterrupt) throws(PostgresError) {
        guard PQstatus(handle) != CONNECTION_BAD else { throw failure() }
        PQsetErrorVerbosity(handle, PQERRORS_VERBOSE)
        let clock = ContinuousClock()
        let deadline = clock.now + timeout
        var state = PGRES_POLLING_WRITING
        while state != PGRES_POLLING_OK {
            let left = clock.now.duration(to: deadline)
            try interrupt.follow(PQsocket(handle))
            guard SocketWait.wait(PQsocket(handle), forWriting: state == PGRES_POLLING_WRITING, atMost: left) else {
                throw PostgresError(
                    message: "no session with \(database) within \(timeout); check that the server is reachable",
                    isConnectionLost: true)
            }
            state = PQconnectPoll(handle)
            if state == PGRES_POLLING_FAILED { throw failure() }
        }
        PQsetErrorVerbosity(handle, PQERRORS_DEFAULT)
    }

    private func failure() -> PostgresError { PostgresError(connecting: PQerrorMessage(handle)) }
}

enum SocketWait {
    /// Waits until the socket is writable or readable; `false` on timeout.
    static func wait(_ socket: Int32, forWriting: Bool, atMost time: Duration) -> Bool {
        let events = Int16(forWriting ? POLLOUT : POLLIN)
        let end = ContinuousClock.now + time
        while true {
            let left = ContinuousClock.now.duration(to: end) / .milliseconds(1)
            guard left > 0 else { return false }
            var entry = pollfd(fd: socket, events: events, revents: 0)
            // At least one millisecond, so that a remainder below it does not spin.
            let answer = poll(&entry, 1, Int32(min(max(left, 1), 1_000_000)))
            if answer > 0 { return true }
            if answer < 0 && errno != EINTR && errno != EAGAIN { return true }
        }
    }

    /// Whether there is data to read, or the peer has closed the connection.
    static func hasInput(_ socket: Int32) -> Bool {
        var entry = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
        return poll(&entry, 1, 0) > 0
    }
}
