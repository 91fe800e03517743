import CMicrohttpd
import Glibc
import Synchronization

/// One client's connection and the request under way on it.
///
/// The library's thread that serves the connection calls it, the supervisor (deadlines, clients gone, stopping) and the
/// task that makes an answer do, too; they meet in `state`.
final class Connection: Sendable {
    /// Where the request under way stands.
    enum Phase {
        /// No request line has come.
        case waiting
        /// The request line has come, the rest not yet.
        case receiving
        /// A task makes the answer. Whoever leaves this phase resumes the connection, under the lock: so once, and before
        /// the library can free it.
        case suspended(LibraryConnection)
        /// The answer is made, and the library's thread is about to fetch it.
        case ready(HTTPResponse)
        /// The library sends the answer.
        case sending(HTTPBodyStream?)
        /// The connection was answered past the library or is to end without an answer; whatever comes is dropped.
        case cutOff
        /// The library is about to close the socket, or has: the descriptor belongs to nobody or somebody else.
        case closed
    }

    struct State {
        var phase = Phase.waiting
        /// When the phase is over at the latest; means something while waiting, receiving or cut off.
        var deadline: UInt64
        /// Whether the supervisor has an entry for this connection.
        var isWatched = true
        /// Counts requests, so that a task that outlives its request finds that out.
        var request: UInt64 = 0
        var task: Task<Void, Never>?
        /// The client has closed its side.
        var peerHasLeft = false
    }

    let descriptor: Int32
    /// Tells connections apart that have the same descriptor one after the other.
    let number: UInt32
    let peer: HTTPPeer
    let core: ServerCore
    let state: Mutex<State>

    // Unsafe: used by the one library thread that serves this connection alone, inside the library's callbacks.
    nonisolated(unsafe) var reception = Reception()

    init(descriptor: Int32, number: UInt32, peer: HTTPPeer, core: ServerCore, deadline: UInt64) {
        self.descriptor = descriptor
        self.number = number
        self.peer = peer
        self.core = core
        state = Mutex(State(deadline: deadline))
    }

    /// The first line of a request has come.
    func requestLineArrived(length: Int) {
        reception.targetLength = length
        let latest = MonotonicTime.now() + core.requestTime
        state.withLock { state in
            guard case .waiting = state.phase else { return }
            state.phase = .receiving
            state.deadline = min(state.deadline, latest)
        }
    }

    /// The library is done with a request: answered, refused or broken off.
    func requestEnded() {
        if reception.hasBegun { core.requestEnded() }
        core.answers.giveBack(reception.answerBytes)
        reception = Reception()
        let now = MonotonicTime.now()
        let nextLook: UInt64? = state.withLock { state in
            state.request += 1
            state.task = nil
            switch state.phase {
            case .cutOff, .closed: return nil
            default: break
            }
            state.phase = .waiting
            // What a client sent before it closed its side may hold more requests.
            state.deadline = now + (state.peerHasLeft ? ServerCore.farewellTime : core.idleTime + core.requestTime)
            // The drain looks at every connection once; one that comes to rest later looks at the drain.
            if core.isDraining.load(ordering: .sequentiallyConsistent) { shutdown(descriptor, Int32(SHUT_RDWR)) }
            defer { state.isWatched = true }
            return state.isWatched && !state.peerHasLeft ? nil : min(state.deadline, now + core.requestTime)
        }
        if let nextLook { core.supervisor.watch(self, until: nextLook) }
    }

    /// The library closes the socket next.
    func socketCloses() {
        let task = state.withLock { state in
            state.phase = .closed
            defer { state.task = nil }
            return state.task
        }
        task?.cancel()
        core.supervisor.stopHearing(self)
        core.table.remove(self)
    }
}

// MARK: - What the supervisor does

extension Connection {
    /// Ends what has taken too long; returns when to look again, or `nil` for not before it asks.
    func checkDeadline(now: UInt64) -> UInt64? {
        // The application formats the answer, which it must not do under the lock.
        let farewell = state.withLock { isOwedAnswer($0, now: now) } ? core.format(.tooLate) : nil
        return state.withLock { state in
            switch state.phase {
            case .waiting, .receiving, .cutOff:
                // The line of another request may bring the deadline as near as this, but no nearer.
                if now < state.deadline { return min(state.deadline, now + core.requestTime) }
                return endLate(&state, now: now, farewell: isOwedAnswer(state, now: now) ? farewell : nil)
            case .suspended, .ready, .sending, .closed:
                state.isWatched = false
                return nil
            }
        }
    }

    /// Whether a request is late that the client can be told about.
    private func isOwedAnswer(_ state: borrowing State, now: UInt64) -> Bool {
        guard case .receiving = state.phase else { return false }
        return now >= state.deadline && !core.isSecure && !state.peerHasLeft
    }

    private func endLate(_ state: inout State, now: UInt64, farewell: HTTPResponse?) -> UInt64? {
        if let farewell, sendPastLibrary(farewell, &state, now: now) {
            core.counters.count(.timedOut)
            return state.deadline
        }
        if case .cutOff = state.phase {
            // It had its time to read the answer.
        } else if !state.peerHasLeft {
            core.counters.connectionsTimedOut.add(1)
        }
        state.phase = .cutOff
        state.isWatched = false
        shutdown(descriptor, Int32(SHUT_RDWR))
        return nil
    }

    /// Writes an answer to the socket itself, while the library still receives the request and has written nothing, and
    /// leaves the client some time to read it.
    ///
    /// Not for TLS, whose session belongs to the library. `false` when the socket does not take it.
    ///
    /// Safe from any thread: under the lock and not in phase `closed` the descriptor is this connection's; and the
    /// library writes nothing in phase `cutOff` but a page of its own about a request it cannot read.
    func sendPastLibrary(_ response: HTTPResponse, _ state: inout State, now: UInt64) -> Bool {
        let bytes = RawResponse.bytes(of: response)
        let sent = bytes.withUnsafeBytes {
            Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
        }
        guard sent == bytes.count else { return false }
        shutdown(descriptor, Int32(SHUT_WR))
        state.phase = .cutOff
        state.deadline = now + ServerCore.farewellTime
        return true
    }

    /// The client has closed its side.
    ///
    /// The library misses that where it comes together with the last bytes, so a connection without a whole request gets
    /// a deadline: not an end at once, since the rest may lie unread in the socket.
    func peerLeft() {
        let deadline = MonotonicTime.now() + ServerCore.farewellTime
        let (task, stream, isLate): (Task<Void, Never>?, HTTPBodyStream?, Bool) = state.withLock { state in
            state.peerHasLeft = true
            switch state.phase {
            case .sending(let stream?):
                // The thread that serves it may wait until the socket takes more; this wakes it.
                shutdown(descriptor, Int32(SHUT_RDWR))
                return (nil, stream, false)
            case .waiting, .receiving:
                state.deadline = min(state.deadline, deadline)
                state.isWatched = true
                return (nil, nil, true)
            case .suspended, .ready, .sending, .cutOff, .closed:
                return (state.task, nil, false)
            }
        }
        task?.cancel()
        stream?.abort()
        if isLate { core.supervisor.watch(self, until: deadline) }
    }

    /// Ends the connection if no request is under way.
    func endIfIdle() {
        state.withLock { state in
            if case .waiting = state.phase { shutdown(descriptor, Int32(SHUT_RDWR)) }
        }
    }

    /// Ends the connection whatever it does; afterwards it is not suspended and never will be.
    func abort() {
        let (task, stream, unsent): (Task<Void, Never>?, HTTPBodyStream?, HTTPResponse?) = state.withLock { state in
            defer { state.task = nil }
            var stream: HTTPBodyStream?
            var unsent: HTTPResponse?
            switch state.phase {
            case .closed: return (nil, nil, nil)
            case .ready(let response):
                unsent = response
                state.phase = .cutOff
            case .suspended(let connection):
                state.phase = .cutOff
                MHD_resume_connection(connection.pointer)
            case .sending(let sent):
                stream = sent
                state.phase = .cutOff
            case .waiting, .receiving, .cutOff:
                state.phase = .cutOff
            }
            shutdown(descriptor, Int32(SHUT_RDWR))
            return (state.task, stream, unsent)
        }
        task?.cancel()
        stream?.abort()
        unsent?.drop()
    }
}
