import CMicrohttpd
import Synchronization

// What happens to a request that has come as a whole.
extension Connection {
    /// Asks the handler, and sends its answer or waits for it.
    func answer(_ request: HTTPRequest, on connection: OpaquePointer) -> MHD_Result {
        switch core.handler.respond(to: request) {
        case .response(var response):
            let plan = core.compression.plan(&response, acceptsGzip: acceptsGzip(request, response))
            switch plan {
            case .asItIs: break
            case .now(let bytes): core.compression.compress(bytes, in: &response)
            case .inTask(let bytes):
                let original = response
                let compression = core.compression
                return wait(on: connection) {
                    var response = original
                    await compression.compressInPieces(bytes, in: &response)
                    return response
                }
            }
            return send(response, on: connection)
        case .task(let work):
            let core = core
            let headers = request.headers
            return wait(on: connection) {
                var response = await work()
                let acceptsGzip = response.isCompressible && Compression.acceptsGzip(headers)
                switch core.compression.plan(&response, acceptsGzip: acceptsGzip) {
                case .asItIs: break
                case .now(let bytes): core.compression.compress(bytes, in: &response)
                case .inTask(let bytes): await core.compression.compressInPieces(bytes, in: &response)
                }
                return response
            }
        }
    }

    private func acceptsGzip(_ request: HTTPRequest, _ response: HTTPResponse) -> Bool {
        response.isCompressible && Compression.acceptsGzip(request.headers)
    }

    /// Suspends the connection and makes its answer in a task.
    ///
    /// As many tasks as connections can wait, so their number is bounded by `maxConnections`.
    private func wait(
        on connection: OpaquePointer, for work: @escaping @Sendable () async -> HTTPResponse
    ) -> MHD_Result {
        let request: UInt64? = state.withLock { state in
            guard case .receiving = state.phase else { return nil }
            // Before the task starts: it must not resume what is not suspended.
            MHD_suspend_connection(connection)
            state.phase = .suspended(LibraryConnection(pointer: connection))
            return state.request
        }
        guard let request else { return .NO }
        let task = Task {
            let response = await work()
            self.complete(request, with: response)
        }
        let isOver = state.withLock { state in
            guard state.request == request, case .suspended = state.phase else { return true }
            state.task = task
            return state.peerHasLeft
        }
        // Where it has completed meanwhile, this does nothing.
        if isOver { task.cancel() }
        return .YES
    }

    /// Takes the answer that a task made; drops it when the request is over.
    private func complete(_ request: UInt64, with response: HTTPResponse) {
        let isWanted = state.withLock { state in
            guard state.request == request, case .suspended(let connection) = state.phase else { return false }
            state.task = nil
            state.phase = .ready(response)
            MHD_resume_connection(connection.pointer)
            return true
        }
        if !isWanted { response.drop() }
    }

    /// The response, or a refusal where the answers that clients have not taken leave no room for it.
    private func withinRoom(_ response: HTTPResponse) -> HTTPResponse {
        guard case .bytes(let bytes) = response.content, bytes.count > ServerCore.smallAnswer else { return response }
        guard core.answers.takeOrBeAlone(bytes.count) else {
            return core.response(
                for: HTTPRefusal(reason: .overloaded, detail: "the answers under way use up their room"))
        }
        reception.answerBytes = bytes.count
        return response
    }

    /// Hands a response to the library.
    ///
    /// Called by the library's thread, between the phases receiving or ready and sending.
    func send(_ response: HTTPResponse, on connection: OpaquePointer) -> MHD_Result {
        let closes = core.isDraining.load(ordering: .relaxed)
        var response = withinRoom(response)
        var made = LibraryResponse.make(response, closes: closes)
        if case .failure(let failure) = made {
            core.report(.invalidResponse(failure.reason))
            response = core.response(
                for: HTTPRefusal(reason: .invalidResponse, detail: "the answer could not be sent"))
            made = LibraryResponse.make(response, closes: closes)
        }
        guard case .success(let handle) = made else { return .NO }
        // The library holds its own reference from the queue on.
        defer { MHD_destroy_response(handle) }
        var stream: HTTPBodyStream?
        if case .stream(let own) = response.content {
            let isFirst = own.attach(to: LibraryConnection(pointer: connection))
            precondition(isFirst, "a stream serves one response")
            stream = own
        }
        let (isOpen, peerHasLeft) = state.withLock { state in
            switch state.phase {
            case .receiving, .ready:
                state.phase = .sending(stream)
                return (true, state.peerHasLeft)
            case .waiting, .suspended, .sending, .cutOff, .closed: return (false, false)
            }
        }
        guard isOpen else { return .NO }
        if peerHasLeft { stream?.abort() }
        return MHD_queue_response(connection, UInt32(response.status), handle)
    }
}
