import CMicrohttpd
import Synchronization
import ThreadExecutor

/// A request whose body is released once the handler has used it, however long the response takes.
private final class LargeRequest: Sendable {
    private let request: Mutex<HTTPRequest?>

    init(_ request: HTTPRequest) { self.request = Mutex(request) }

    init(_ head: HTTPRequest, _ body: HTTPBody) {
        var request = head
        request.body = body
        self.request = Mutex(request)
    }

    /// Calls the handler in a turn of the caller; may be called once.
    func response(
        of core: ServerCore, to caller: BodyBudget.Holder, _ compressed: (HTTPResponse) async -> HTTPResponse
    ) async -> HTTPResponse {
        switch await core.turns.run(for: caller, { respond(by: core.handler) }) {
        case .response(let response): await compressed(response)
        case .task(let work): await compressed(await work())
        }
    }

    private func respond(by handler: any HTTPHandler) -> HTTPHandlerResult {
        guard let request = request.withLock({ $0.take() }) else { preconditionFailure("a request has one response") }
        return handler.respond(to: request)
    }
}

/// Responding to complete requests.
extension Connection {
    /// Calls the handler, and sends its response or waits for it.
    ///
    /// A handler may take long for a large body, so it is called in a turn of the request's caller, and not on this thread, which
    /// serves other connections.
    func respond(to request: HTTPRequest, on connection: OpaquePointer) -> MHD_Result {
        let caller = caller
        let core = core
        let acceptsGzip = Compression.acceptsGzip(request.headers)
        let compressed = compression(for: request)
        if request.body.count > ServerCore.largeBody {
            let request = LargeRequest(request)
            return wait(on: connection) { await request.response(of: core, to: caller, compressed) }
        }
        switch core.handler.respond(to: request) {
        case .response(var response):
            if core.compression.compressAtOnce(&response, acceptsGzip: acceptsGzip) {
                return send(response, on: connection)
            }
            return wait(on: connection) { [response] in await compressed(response) }
        case .task(let work):
            return wait(on: connection) { await compressed(await work()) }
        }
    }

    /// Decompresses the rest of a body in turns of the caller, and then calls the handler.
    func respond(
        to request: HTTPRequest, decompressing body: CompressedBody, on connection: OpaquePointer
    ) -> MHD_Result {
        let caller = caller
        let core = core
        let compressed = compression(for: request)
        return wait(on: connection) {
            do throws(BodyReceiver.Fault) {
                while true {
                    let whole = try await core.turns.run(for: caller) { () throws(BodyReceiver.Fault) in
                        try body.decompressPiece().map { LargeRequest(request, $0) }
                    }
                    if let whole { return await whole.response(of: core, to: caller, compressed) }
                }
            } catch {
                return core.response(for: RefusedRequest(error).refusal)
            }
        }
    }

    /// The caller of the request, where the handler has named it; else its address.
    private var caller: BodyBudget.Holder { incoming.caller ?? .address(peer.client) }

    /// Compresses a response to a request if it is large enough, in a turn of the caller.
    func compression(for request: HTTPRequest) -> @Sendable (HTTPResponse) async -> HTTPResponse {
        let caller = caller
        let core = core
        let acceptsGzip = Compression.acceptsGzip(request.headers)
        return { await core.compression.compressed($0, acceptsGzip: acceptsGzip, of: caller, in: core.turns) }
    }

    /// Suspends the connection and makes its response in a task; `maxConnections` bounds the number of tasks.
    private func wait(
        on connection: OpaquePointer, for work: @escaping @Sendable () async -> HTTPResponse
    ) -> MHD_Result {
        let request: UInt64? = state.withLock { state in
            guard case .receiving = state.phase else { return nil }
            // Before the task starts, because it resumes the connection.
            MHD_suspend_connection(connection)
            state.phase = .suspended(MicrohttpdConnection(pointer: connection))
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
            return state.peerHasClosed
        }
        // Does nothing if the task has completed meanwhile.
        if isOver { task.cancel() }
        return .YES
    }

    /// Sends the response of a task; drops it if the request has ended.
    func complete(_ request: UInt64, with response: HTTPResponse) {
        let isWanted = state.withLock { state in
            guard state.request == request, case .suspended(let connection) = state.phase else { return false }
            (state.task, state.streamed) = (nil, nil)
            state.phase = .ready(response)
            MHD_resume_connection(connection.pointer)
            return true
        }
        if !isWanted, !respondEarly(request, response) { response.drop() }
    }

    /// The response, or a refusal if the responses that clients have not read yet use up the budget, or the caller's share of it.
    private func withinBudget(_ response: HTTPResponse) -> HTTPResponse {
        let count = response.countedBytes
        if count == 0 { return response }
        response.reservation?.resize(to: count)
        guard let reservation = response.reservation ?? core.responseBudget.reserveNow(count, for: caller) else {
            return core.response(
                for: HTTPRefusal(
                    reason: .overloaded, detail: "the responses in flight have reached their limit, try again"))
        }
        incoming.reservation = reservation
        return response
    }

    /// How long, in nanoseconds, the client may take to read a large response; `nil` for others.
    private func timeLimit(of response: HTTPResponse) -> UInt64? {
        guard case .bytes(let bytes) = response.content, bytes.count > ServerCore.smallResponse else { return nil }
        return core.idleTime + UInt64(bytes.count) * 1_000_000_000 / UInt64(core.configuration.leastReadRate)
    }

    /// Queues a response; called on the connection's thread in the phases `receiving` and `ready`.
    func send(_ response: HTTPResponse, on connection: OpaquePointer) -> MHD_Result {
        let closes = core.isDraining.load(ordering: .relaxed)
        let onSend = response.onSend
        var response = withinBudget(response)
        let fields = core.configuration.commonFields == nil ? [] : state.withLock { $0.commonFields }
        var created = MicrohttpdResponse.make(response, fields, closes: closes)
        if case .failure(let failure) = created {
            core.report(.invalidResponse(failure.reason))
            response = core.response(
                for: HTTPRefusal(reason: .invalidResponse, detail: "the response could not be sent"))
            created = MicrohttpdResponse.make(response, fields, closes: closes)
        }
        guard case .success(let handle) = created else { return .NO }
        // libmicrohttpd keeps a reference of its own once the response is queued.
        defer { MHD_destroy_response(handle) }
        var stream: HTTPBodyStream?
        if case .stream(let own) = response.content {
            let isFirst = own.attach(to: MicrohttpdConnection(pointer: connection))
            precondition(isFirst, "a stream serves one response")
            stream = own
        }
        let timeLimit = timeLimit(of: response)
        let now = MonotonicTime.now()
        let (isOpen, peerHasClosed, check): (Bool, Bool, UInt64?) = state.withLock { state in
            switch state.phase {
            case .receiving, .ready:
                state.phase = .sending(stream)
                state.deadline = timeLimit.map { now + $0 } ?? UInt64.max
                guard timeLimit != nil, !state.isScheduled else { return (true, state.peerHasClosed, nil) }
                state.isScheduled = true
                return (true, state.peerHasClosed, min(state.deadline, now + core.requestTime))
            case .waiting, .paused, .suspended, .sending, .cutOff, .closed: return (false, false, nil)
            }
        }
        guard isOpen else { return .NO }
        if let check { core.eventLoop.schedule(self, at: check) }
        if peerHasClosed { stream?.abort() }
        onSend?(response.status)
        return MHD_queue_response(connection, UInt32(response.status), handle)
    }
}
