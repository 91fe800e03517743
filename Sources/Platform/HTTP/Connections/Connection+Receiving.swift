import CMicrohttpd
import Glibc
import Synchronization

/// Receiving requests, on the connection's libmicrohttpd thread.
extension Connection {
    /// The headers have arrived.
    func begin(
        _ connection: OpaquePointer, method: UnsafePointer<CChar>?, target: UnsafePointer<CChar>?,
        version: UnsafePointer<CChar>?
    ) -> MHD_Result {
        incoming.hasBegun = true
        core.counters.requests.add(1)
        core.counters.requestsUnderWay.wrappingAdd(1, ordering: .sequentiallyConsistent)
        let headerSize = CMicrohttpd_header_size(connection)
        let headers = HTTPHeaders(of: connection, byteCount: headerSize)
        if let fields = core.configuration.commonFields?(headers) { state.withLock { $0.commonFields = fields } }
        let version: HTTPVersion = version.map { strcmp($0, "HTTP/1.0") == 0 } ?? false ? .http10 : .http11
        // A body may follow until the framing is known.
        var hasBody = true
        do throws(RefusedRequest) {
            let framing = try BodyFraming(headers, version: version)
            hasBody = framing.hasBody
            if incoming.targetLength > core.configuration.maxURLBytes {
                throw RefusedRequest(.urlTooLong, "the target is longer than \(core.configuration.maxURLBytes) bytes")
            }
            if headerSize > core.configuration.maxHeaderBytes {
                throw RefusedRequest(
                    .headersTooLarge, "the headers are larger than \(core.configuration.maxHeaderBytes) bytes")
            }
            let request = try readHead(connection, method: method, target: target, version: version, headers: headers)
            incoming.request = request
            guard hasBody else { return .YES }
            switch try prepareBody(for: request, framing) {
            case .refused(let response): return refuseBody(connection, response)
            case .whole: return .YES
            case .pieces(let pieces): return respond(whileReceiving: pieces, on: connection)
            }
        } catch {
            let response = core.response(for: error.refusal)
            guard hasBody else {
                // Sent at the end of the request, so that the connection can be reused.
                incoming.earlyResponse = response
                return .YES
            }
            return refuseBody(connection, response)
        }
    }

    private func readHead(
        _ connection: OpaquePointer, method: UnsafePointer<CChar>?, target: UnsafePointer<CChar>?,
        version: HTTPVersion, headers: HTTPHeaders
    ) throws(RefusedRequest) -> HTTPRequest {
        if version == .http11, headers.all("host").count != 1 {
            throw RefusedRequest(.malformed, "an HTTP/1.1 request must have exactly one Host header")
        }
        guard let method, let method = HTTPMethod(UnsafeBufferPointer(text: method, count: strlen(method))) else {
            throw RefusedRequest(.malformed, "the method must be a token")
        }
        guard let target, let path = HTTPTarget.path(of: UnsafeBufferPointer(text: target, count: strlen(target))),
            let rawPath = String(validating: path, as: UTF8.self), let segments = HTTPTarget.segments(of: path),
            let query = HTTPQueryItem.all(of: connection)
        else {
            throw RefusedRequest(.malformed, "the target must be a path and query, percent-encoded correctly")
        }
        return HTTPRequest(
            method: method, rawPath: rawPath, segments: segments, query: query, headers: headers, peer: peer,
            version: version, body: .empty)
    }

    private enum Body {
        case whole
        case pieces(HTTPBodyPieces)
        /// By the application.
        case refused(HTTPResponse)
    }

    /// Prepares to read the body.
    private func prepareBody(for request: HTTPRequest, _ framing: BodyFraming) throws(RefusedRequest) -> Body {
        var limit = core.configuration.maxBodyBytes
        var isStreamed = false
        var holders: [BodyBudget.Holder] =
            core.configuration.maxConnectionsPerClient == nil ? [] : [.address(peer.client)]
        let isTooLarge = { (limit: Int) in
            framing.declared.map { $0 > BodyReceiver.encodedLimit(limit, isGzip: framing.isGzip) } ?? false
        }
        let policy = core.handler.bodyPolicy(for: request)
        switch policy {
        case .accept: break
        case .acceptUpTo(let own, let caller, let context), .stream(let own, let caller, let context):
            incoming.request?.context = context
            if let caller {
                holders.append(.caller(caller))
                incoming.caller = .caller(caller)
            }
            if case .stream = policy { isStreamed = true }
            limit = isStreamed ? max(0, own) : min(limit, max(0, own))
        case .refuse(let response):
            if case .stream = response.content {
                response.drop()
                throw Self.streamForUnreadBody
            }
            return .refused(response)
        }
        if isStreamed, framing.isGzip { throw .encodedStream }
        if isTooLarge(limit) { throw RefusedRequest(BodyReceiver.Fault.tooLarge) }
        if isStreamed { return .pieces(try pieces(limit: limit, framing, holders)) }
        guard let reservation = core.bodyBudget.begin(holders, expecting: framing.declared ?? 1) else {
            throw RefusedRequest(BodyReceiver.Fault.overloaded)
        }
        do {
            incoming.body = try BodyReceiver(
                limit: limit, declared: framing.declared, isGzip: framing.isGzip, reservation: reservation)
        } catch {
            throw RefusedRequest(error)
        }
        return .whole
    }

    private func pieces(
        limit: Int, _ framing: BodyFraming, _ holders: [BodyBudget.Holder]
    ) throws(RefusedRequest) -> HTTPBodyPieces {
        let memory = HTTPBodyPieces.memory(declared: framing.declared)
        guard let reservation = core.bodyBudget.begin(holders, expecting: memory), reservation.grow(by: memory) else {
            throw RefusedRequest(BodyReceiver.Fault.overloaded)
        }
        return HTTPBodyPieces(limit: limit, declared: framing.declared, reservation: reservation)
    }

    private static var streamForUnreadBody: RefusedRequest {
        RefusedRequest(.invalidResponse, "a request whose body is not read cannot get a stream")
    }

    /// A piece of the body has arrived.
    ///
    /// - Returns: `isTaken`: whether it need not come again.
    func append(
        _ bytes: UnsafeRawBufferPointer, of connection: OpaquePointer
    ) -> (result: MHD_Result, isTaken: Bool) {
        guard !incoming.discardsBody else { return (.YES, true) }
        if incoming.isStreamed { return appendPiece(bytes, of: connection) }
        do {
            try incoming.body?.append(bytes)
            return (.YES, true)
        } catch {
            // Releases the memory before the client gets the response.
            incoming.body = nil
            return (refuseRest(core.response(for: RefusedRequest(error).refusal)), true)
        }
    }

    /// Responds to a request whose body has not been read.
    ///
    /// A client that waits for 100 Continue has not sent its body, so libmicrohttpd's early response, which closes the
    /// connection, loses nothing. With TLS there is no other way.
    func refuseBody(_ connection: OpaquePointer, _ response: HTTPResponse) -> MHD_Result {
        let waits = incoming.request?.headers.bytes(of: "expect")?.equalsIgnoringCase("100-continue") ?? false
        if core.isSecure || waits {
            return send(response, on: connection)
        }
        return refuseRest(response)
    }

    /// Responds to a request before the end of its body, which libmicrohttpd cannot do: writes directly to the socket
    /// and discards further input, so that the client can read the response before the connection is reset.
    ///
    /// With TLS, responds after the body.
    func refuseRest(_ response: HTTPResponse) -> MHD_Result {
        incoming.discardsBody = true
        if core.isSecure {
            incoming.earlyResponse = response
            return .YES
        }
        let now = MonotonicTime.now()
        let deadline: UInt64? = state.withLock { state in
            guard case .receiving = state.phase, sendDirectly(response, &state, now: now) else { return nil }
            state.isScheduled = true
            return state.deadline
        }
        guard let deadline else { return .NO }
        // A second entry for this connection, since the existing one is for a later time.
        core.eventLoop.schedule(self, at: deadline)
        return .YES
    }

    /// The request is complete, or its response is ready.
    func finishRequest(_ connection: OpaquePointer) -> MHD_Result {
        let ready: HTTPResponse?
        let (phase, early) = state.withLock { ($0.phase, $0.earlyResponse) }
        switch phase {
        case .receiving: ready = incoming.earlyResponse ?? early
        case .ready(let response): ready = response
        case .waiting, .paused, .suspended, .sending, .cutOff, .closed: return .NO
        }
        if let ready { return send(ready, on: connection) }
        if incoming.isStreamed { return finishPieces(on: connection) }
        guard var request = incoming.request else { return .NO }
        incoming.request = nil
        if let body = incoming.body {
            incoming.body = nil
            if body.hasRest { return respond(to: request, decompressing: CompressedBody(body), on: connection) }
            do {
                request.body = try body.finish()
            } catch {
                return send(core.response(for: RefusedRequest(error).refusal), on: connection)
            }
        }
        return respond(to: request, on: connection)
    }
}
