import CMicrohttpd
import Glibc
import Synchronization

extension Connection {
    /// A body that a handler reads while it arrives.
    struct StreamedBody {
        let pieces: HTTPBodyPieces
        /// The deadline of a body without bytes.
        var deadline: UInt64
        /// Since when the handler has not read what has arrived.
        var pausedAt: UInt64 = 0
    }
}

/// Bodies that a handler reads while they arrive.
extension Connection {
    /// Calls the handler at the start of a body.
    func respond(whileReceiving pieces: HTTPBodyPieces, on connection: OpaquePointer) -> MHD_Result {
        guard var request = incoming.request else { return .NO }
        incoming.request = nil
        request.bodyPieces = pieces
        let work: @Sendable () async -> HTTPResponse
        switch core.handler.respond(to: request) {
        case .response(let response):
            pieces.fail()
            return refuseBody(connection, sendableEarly(response))
        case .task(let task): work = task
        }
        incoming.isStreamed = true
        let number: UInt64? = state.withLock { state in
            guard case .receiving = state.phase else { return nil }
            state.streamed = StreamedBody(pieces: pieces, deadline: state.deadline)
            return state.request
        }
        guard let number else {
            pieces.fail()
            return .NO
        }
        pieces.onSpace { [weak self] in self?.continueReceiving(number) }
        let compressed = compression(for: request)
        let task = Task {
            let response = await compressed(await work())
            self.complete(number, with: response)
        }
        let isOver = state.withLock { state in
            guard state.request == number, state.streamed != nil else { return true }
            state.task = task
            return false
        }
        // Does nothing if the task has completed meanwhile.
        if isOver { task.cancel() }
        return .YES
    }

    /// Gives a piece to the handler; pauses the connection if that has not read the one before.
    func appendPiece(
        _ bytes: UnsafeRawBufferPointer, of connection: OpaquePointer
    ) -> (result: MHD_Result, isTaken: Bool) {
        let now = MonotonicTime.now()
        let result: HTTPBodyPieces.Append = state.withLock { state in
            // The rest of a body that nobody reads any more is discarded.
            guard case .receiving = state.phase, let streamed = state.streamed else { return .accepted }
            let result = streamed.pieces.append(bytes)
            switch result {
            case .accepted: state.deadline = deadline(of: streamed, state, now: now)
            case .full:
                MHD_suspend_connection(connection)
                state.phase = .paused(MicrohttpdConnection(pointer: connection))
                state.streamed?.pausedAt = now
            case .tooLarge: break
            }
            return result
        }
        switch result {
        case .accepted: return (.YES, true)
        case .full: return (.YES, false)
        case .tooLarge:
            stopStreaming()
            return (refuseRest(core.response(for: RefusedRequest(BodyReceiver.Fault.tooLarge).refusal)), true)
        }
    }

    private func deadline(of streamed: StreamedBody, _ state: borrowing State, now: UInt64) -> UInt64 {
        // What a client has sent before it closed its side is read.
        if state.peerHasClosed { return now + ServerCore.lingerTime }
        let rate = UInt64(core.configuration.leastSendRate)
        let received = UInt64(streamed.pieces.received)
        let (seconds, rest) = received.quotientAndRemainder(dividingBy: rate)
        return streamed.deadline + seconds * 1_000_000_000 + rest * 1_000_000_000 / rate
    }

    /// The handler has read what had arrived.
    private func continueReceiving(_ request: UInt64) {
        let now = MonotonicTime.now()
        let check: UInt64? = state.withLock { state in
            guard state.request == request, case .paused(let connection) = state.phase, var streamed = state.streamed
            else { return nil }
            streamed.deadline += now - streamed.pausedAt
            state.streamed = streamed
            state.deadline = deadline(of: streamed, state, now: now)
            state.phase = .receiving
            MHD_resume_connection(connection.pointer)
            guard !state.isScheduled || state.peerHasClosed else { return nil }
            state.isScheduled = true
            return min(state.deadline, now + core.requestTime)
        }
        if let check { core.eventLoop.schedule(self, at: check) }
    }

    /// The whole body has arrived: waits for the handler's response.
    func finishPieces(on connection: OpaquePointer) -> MHD_Result {
        let (pieces, task): (HTTPBodyPieces?, Task<Void, Never>?) = state.withLock { state in
            guard case .receiving = state.phase, let streamed = state.streamed else { return (nil, nil) }
            // Before the handler can know of the end, and respond.
            MHD_suspend_connection(connection)
            state.phase = .suspended(MicrohttpdConnection(pointer: connection))
            return (streamed.pieces, state.peerHasClosed ? state.task : nil)
        }
        guard let pieces else { return .NO }
        pieces.finish()
        task?.cancel()
        return .YES
    }

    /// Sends a response whose handler has not waited for the end of the body; `false` if nobody waits for it.
    func respondEarly(_ request: UInt64, _ response: HTTPResponse) -> Bool {
        // The application formats what replaces it, so not under the lock.
        let response = sendableEarly(response)
        let now = MonotonicTime.now()
        let (pieces, isSent, check): (HTTPBodyPieces?, Bool, UInt64?) = state.withLock { state in
            guard state.request == request, let streamed = state.streamed else { return (nil, false, nil) }
            let paused: MicrohttpdConnection?
            switch state.phase {
            case .receiving: paused = nil
            case .paused(let connection): paused = connection
            case .waiting, .suspended, .ready, .sending, .cutOff, .closed: return (nil, false, nil)
            }
            (state.task, state.streamed) = (nil, nil)
            var isSent = false
            if core.isSecure {
                state.earlyResponse = response
                state.phase = .receiving
                state.deadline = max(state.deadline, now + core.requestTime)
            } else {
                isSent = sendDirectly(response, &state, now: now)
                if !isSent {
                    state.phase = .cutOff
                    shutdown(descriptor, Int32(SHUT_RDWR))
                }
            }
            if let paused { MHD_resume_connection(paused.pointer) }
            state.isScheduled = true
            return (streamed.pieces, isSent, state.deadline)
        }
        guard let pieces else { return false }
        pieces.fail()
        if isSent { response.onSend?(response.status) }
        if let check { core.eventLoop.schedule(self, at: check) }
        return true
    }

    /// A response that can be sent before the body has arrived.
    private func sendableEarly(_ response: HTTPResponse) -> HTTPResponse {
        guard case .stream = response.content else { return response }
        response.drop()
        return core.response(
            for: HTTPRefusal(
                reason: .invalidResponse, detail: "a request whose body is not read cannot get a stream"))
    }

    /// No more of the body arrives, and the handler's response cannot be sent.
    func stopStreaming() {
        let (pieces, task): (HTTPBodyPieces?, Task<Void, Never>?) = state.withLock { state in
            guard let streamed = state.streamed else { return (nil, nil) }
            state.streamed = nil
            return (streamed.pieces, state.task)
        }
        pieces?.fail()
        task?.cancel()
    }
}
