import CMicrohttpd
import Glibc
import Synchronization

/// A client's connection and its current request.
///
/// It is called by the libmicrohttpd thread that serves the connection, by the event loop (deadlines, disconnects,
/// stop) and by the task of a handler; `state` synchronizes them.
final class Connection: Sendable {
    enum Phase {
        /// Waiting for a request line.
        case waiting
        /// The request line has arrived.
        case receiving
        /// As `receiving`, and the handler has not read yet what of the body has arrived. Leaving this phase resumes the connection, as
        /// from `suspended`.
        case paused(MicrohttpdConnection)
        /// A task makes the response. Leaving this phase resumes the connection, under the lock: therefore exactly
        /// once, and before libmicrohttpd can free it.
        case suspended(MicrohttpdConnection)
        /// The task has made the response, and the connection's thread is about to queue it.
        case ready(HTTPResponse)
        /// libmicrohttpd sends the response.
        case sending(HTTPBodyStream?)
        /// The response was written directly to the socket, or the connection ends without one; input is discarded.
        case cutOff
        /// libmicrohttpd closes the socket or has closed it, so the descriptor may be reused.
        case closed
    }

    struct State {
        var phase = Phase.waiting
        /// The end of the phases `waiting`, `receiving` and `cutOff`, and of `sending` where that is limited.
        var deadline: UInt64
        /// Whether the event loop has an entry for this connection.
        var isScheduled = true
        /// Headers of every response to the current request, beside its own.
        var commonFields: [HTTPField] = []
        /// Counts requests, so that a task can detect that its request has ended.
        var request: UInt64 = 0
        var task: Task<Void, Never>?
        /// The body that the task reads while it arrives; `nil` once the task has ended, or no more arrives.
        var streamed: StreamedBody?
        /// With TLS, the response of a task that has ended before the body has arrived.
        var earlyResponse: HTTPResponse?
        /// The client has closed its side.
        var peerHasClosed = false
    }

    let descriptor: Int32
    /// Distinguishes connections that use the same descriptor one after the other.
    let number: UInt32
    let peer: HTTPPeer
    let core: ServerCore
    let state: Mutex<State>

    // Unsafe: used only by the libmicrohttpd thread that serves this connection, in its callbacks.
    nonisolated(unsafe) var incoming = IncomingRequest()

    // Unsafe: as `incoming`. Kept for the TLS session, which ends before the connection is released.
    nonisolated(unsafe) var credentials: TLSCredentials?

    init(descriptor: Int32, number: UInt32, peer: HTTPPeer, core: ServerCore, deadline: UInt64) {
        self.descriptor = descriptor
        self.number = number
        self.peer = peer
        self.core = core
        state = Mutex(State(deadline: deadline))
    }

    func requestLineArrived(length: Int) {
        incoming.targetLength = length
        let latest = MonotonicTime.now() + core.requestTime
        state.withLock { state in
            guard case .waiting = state.phase else { return }
            state.phase = .receiving
            state.deadline = min(state.deadline, latest)
        }
    }

    /// libmicrohttpd begins to serve the connection, and its TLS session is about to begin.
    func start(_ connection: OpaquePointer) {
        guard let certificate = core.certificate else { return }
        let credentials = certificate.credentials
        self.credentials = credentials
        // Without the current certificate the connection ends, since the first one may have expired.
        if !credentials.use(for: connection) { shutdown(descriptor, Int32(SHUT_RDWR)) }
    }

    /// libmicrohttpd has finished a request: answered, refused or aborted.
    func requestEnded() {
        if incoming.hasBegun { core.requestEnded() }
        incoming = IncomingRequest()
        let now = MonotonicTime.now()
        stopStreaming()
        let nextCheck: UInt64? = state.withLock { state in
            state.request += 1
            state.task = nil
            state.earlyResponse = nil
            state.commonFields = []
            switch state.phase {
            case .cutOff, .closed: return nil
            default: break
            }
            state.phase = .waiting
            // The input that a client sent before it closed its side may contain more requests.
            state.deadline = now + (state.peerHasClosed ? ServerCore.lingerTime : core.idleTime + core.requestTime)
            // The drain closes connections that are idle; one that becomes idle later closes itself.
            if core.isDraining.load(ordering: .sequentiallyConsistent) { shutdown(descriptor, Int32(SHUT_RDWR)) }
            defer { state.isScheduled = true }
            return state.isScheduled && !state.peerHasClosed ? nil : min(state.deadline, now + core.requestTime)
        }
        if let nextCheck { core.eventLoop.schedule(self, at: nextCheck) }
    }

    /// libmicrohttpd is about to close the socket.
    func socketCloses() {
        stopStreaming()
        let task = state.withLock { state in
            state.phase = .closed
            defer { state.task = nil }
            return state.task
        }
        task?.cancel()
        core.eventLoop.stopObservingClose(of: self)
        core.table.remove(self)
    }
}

// MARK: - Called by the event loop

extension Connection {
    /// Ends a connection that is late.
    ///
    /// - Returns: when to check again; `nil` for not before the connection is scheduled again.
    func checkDeadline(now: UInt64) -> UInt64? {
        // The application formats the response, so not under the lock.
        let timeoutResponse = state.withLock { canAnswerTimeout($0, now: now) } ? core.format(.timedOut) : nil
        let (next, isLate): (UInt64?, Bool) = state.withLock { state in
            switch state.phase {
            case .waiting, .receiving, .cutOff:
                // The next request line can bring the deadline forward to this time, but not further.
                if now < state.deadline { return (min(state.deadline, now + core.requestTime), false) }
                let next = endLate(
                    &state, now: now, timeoutResponse: canAnswerTimeout(state, now: now) ? timeoutResponse : nil)
                return (next, true)
            case .sending(nil) where state.deadline < UInt64.max:
                if now < state.deadline { return (min(state.deadline, now + core.requestTime), false) }
                return (endLate(&state, now: now, timeoutResponse: nil), true)
            case .paused, .suspended, .ready, .sending, .closed:
                state.isScheduled = false
                return (nil, false)
            }
        }
        if isLate { stopStreaming() }
        return next
    }

    /// Whether a late request can be answered with 408.
    private func canAnswerTimeout(_ state: borrowing State, now: UInt64) -> Bool {
        guard case .receiving = state.phase else { return false }
        return now >= state.deadline && !core.isSecure && !state.peerHasClosed
    }

    private func endLate(_ state: inout State, now: UInt64, timeoutResponse: HTTPResponse?) -> UInt64? {
        if let timeoutResponse, sendDirectly(timeoutResponse, &state, now: now) {
            core.counters.count(.timedOut)
            return state.deadline
        }
        if case .cutOff = state.phase {
            // The time to read the response is over.
        } else if !state.peerHasClosed {
            core.counters.connectionsTimedOut.add(1)
        }
        state.phase = .cutOff
        state.isScheduled = false
        shutdown(descriptor, Int32(SHUT_RDWR))
        return nil
    }

    /// Writes a response directly to the socket while libmicrohttpd is still receiving the request, and gives the
    /// client some time to read it.
    ///
    /// Not for TLS, whose session belongs to libmicrohttpd.
    ///
    /// Safe on any thread: under the lock, and unless the phase is `closed`, the descriptor belongs to this connection;
    /// in phase `cutOff`, libmicrohttpd writes nothing except its own error page for a malformed request.
    ///
    /// - Returns: `false` if the socket does not accept all bytes.
    func sendDirectly(_ response: HTTPResponse, _ state: inout State, now: UInt64) -> Bool {
        let bytes = RawResponse.bytes(of: response, state.commonFields)
        let sent = bytes.withUnsafeBytes {
            Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
        }
        guard sent == bytes.count else { return false }
        shutdown(descriptor, Int32(SHUT_WR))
        state.phase = .cutOff
        state.deadline = now + ServerCore.lingerTime
        return true
    }

    /// The client has closed its side.
    ///
    /// libmicrohttpd may not notice it if it comes with the last bytes, so a connection without a complete request gets
    /// a deadline. It is not closed at once, because the socket may have unread input.
    func peerClosed() {
        let deadline = MonotonicTime.now() + ServerCore.lingerTime
        let (task, stream, isLate): (Task<Void, Never>?, HTTPBodyStream?, Bool) = state.withLock { state in
            state.peerHasClosed = true
            switch state.phase {
            case .sending(let stream?):
                // Wakes the connection's thread if it waits until the socket is writable.
                shutdown(descriptor, Int32(SHUT_RDWR))
                return (nil, stream, false)
            case .waiting, .receiving:
                state.deadline = min(state.deadline, deadline)
                state.isScheduled = true
                return (nil, nil, true)
            case .paused:
                // What it has sent already may be the whole body; the time for it begins when the handler reads further.
                return (nil, nil, false)
            case .suspended, .ready, .sending, .cutOff, .closed:
                return (state.task, nil, false)
            }
        }
        task?.cancel()
        stream?.abort()
        if isLate { core.eventLoop.schedule(self, at: deadline) }
    }

    /// Closes the connection if it has no request.
    func endIfIdle() {
        state.withLock { state in
            if case .waiting = state.phase { shutdown(descriptor, Int32(SHUT_RDWR)) }
        }
    }

    /// Closes the connection; afterwards it is not suspended and cannot be.
    func abort() {
        defer { stopStreaming() }
        let (task, stream, unsent): (Task<Void, Never>?, HTTPBodyStream?, HTTPResponse?) = state.withLock { state in
            defer { state.task = nil }
            var stream: HTTPBodyStream?
            var unsent: HTTPResponse?
            switch state.phase {
            case .closed: return (nil, nil, nil)
            case .ready(let response):
                unsent = response
                state.phase = .cutOff
            case .suspended(let connection), .paused(let connection):
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
