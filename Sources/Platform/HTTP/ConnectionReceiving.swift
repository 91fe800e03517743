import CMicrohttpd
import Glibc
import Synchronization

// What the library's thread does with a request as it comes.
extension Connection {
    /// The headers have come.
    func begin(
        _ connection: OpaquePointer, method: UnsafePointer<CChar>?, target: UnsafePointer<CChar>?,
        version: UnsafePointer<CChar>?
    ) -> MHD_Result {
        reception.hasBegun = true
        core.counters.requests.add(1)
        core.counters.requestsUnderWay.wrappingAdd(1, ordering: .sequentiallyConsistent)
        let headerSize = CMicrohttpd_header_size(connection)
        let headers = HTTPHeaders(of: connection, byteCount: headerSize)
        let version: HTTPVersion = version.map { strcmp($0, "HTTP/1.0") == 0 } ?? false ? .http10 : .http11
        // Until the framing is known, a body may follow.
        var hasBody = true
        do throws(RefusedRequest) {
            let framing = try BodyFraming(headers, version: version)
            hasBody = framing.hasBody
            if reception.targetLength > core.configuration.maxURLBytes {
                throw RefusedRequest(.urlTooLong, "the target is longer than \(core.configuration.maxURLBytes) bytes")
            }
            if headerSize > core.configuration.maxHeaderBytes {
                throw RefusedRequest(
                    .headersTooLarge, "the headers are larger than \(core.configuration.maxHeaderBytes) bytes")
            }
            let request = try readHead(connection, method: method, target: target, version: version, headers: headers)
            reception.request = request
            if hasBody, let verdict = try prepareBody(for: request, framing) {
                return refuseBody(connection, verdict)
            }
            return .YES
        } catch {
            let response = core.response(for: error.refusal)
            guard hasBody else {
                // Answered when the library has found the end of the request: so the connection can be used again.
                reception.verdict = response
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
            throw RefusedRequest(.malformed, "a request of HTTP/1.1 has one Host header")
        }
        guard let method, let method = HTTPMethod(UnsafeBufferPointer(text: method, count: strlen(method))) else {
            throw RefusedRequest(.malformed, "the method is no token")
        }
        guard let target, let path = HTTPTarget.path(of: UnsafeBufferPointer(text: target, count: strlen(target))),
            let rawPath = String(validating: path, as: UTF8.self), let segments = HTTPTarget.segments(of: path),
            let query = HTTPQueryItem.all(of: connection)
        else {
            throw RefusedRequest(.malformed, "the target is no path and query, or wrongly percent-encoded")
        }
        return HTTPRequest(
            method: method, rawPath: rawPath, segments: segments, query: query, headers: headers, peer: peer,
            version: version, body: .empty)
    }

    /// Decides whether the body is read; returns the application's answer if not.
    private func prepareBody(for request: HTTPRequest, _ framing: BodyFraming) throws(RefusedRequest) -> HTTPResponse? {
        var limit = core.configuration.maxBodyBytes
        let isTooLarge = { (limit: Int) in
            framing.declared.map { $0 > BodyReceiver.limitOnTheWay(limit, isGzip: framing.isGzip) } ?? false
        }
        if isTooLarge(limit) { throw RefusedRequest(BodyReceiver.Fault.tooLarge) }
        switch core.handler.admit(request) {
        case .accept: break
        case .acceptUpTo(let own):
            limit = min(limit, max(0, own))
            if isTooLarge(limit) { throw RefusedRequest(BodyReceiver.Fault.tooLarge) }
        case .refuse(let response):
            if case .stream = response.content {
                response.drop()
                throw RefusedRequest(.invalidResponse, "a request whose body was not read cannot get a stream")
            }
            return response
        }
        guard core.budget.hasRoom(for: framing.declared ?? 1) else {
            throw RefusedRequest(BodyReceiver.Fault.overloaded)
        }
        do {
            reception.body = try BodyReceiver(
                limit: limit, declared: framing.declared, isGzip: framing.isGzip, budget: core.budget)
        } catch {
            throw RefusedRequest(error)
        }
        return nil
    }

    /// A piece of the body has come.
    func take(_ bytes: UnsafeRawBufferPointer) -> MHD_Result {
        guard !reception.dropsBody else { return .YES }
        do {
            try reception.body?.take(bytes)
            return .YES
        } catch {
            // Nothing else holds it: its memory is free before the client hears of it.
            reception.body = nil
            return refuseRest(core.response(for: RefusedRequest(error).refusal))
        }
    }

    /// Answers a request whose body has not been read.
    ///
    /// A client that waits for 100 Continue has sent none of it, and the library's way of answering early, which closes
    /// the connection, loses nothing; nor is there another way with TLS.
    private func refuseBody(_ connection: OpaquePointer, _ response: HTTPResponse) -> MHD_Result {
        let waits = reception.request?.headers.bytes(of: "expect")?.equalsIgnoringCase("100-continue") ?? false
        if core.isSecure || waits {
            return send(response, on: connection)
        }
        return refuseRest(response)
    }

    /// Answers a request in the midst of its body, where the library cannot: past it, dropping what still comes, so
    /// that the client can read the answer before the connection is reset.
    ///
    /// With TLS, after the body.
    private func refuseRest(_ response: HTTPResponse) -> MHD_Result {
        reception.dropsBody = true
        if core.isSecure {
            reception.verdict = response
            return .YES
        }
        let now = MonotonicTime.now()
        let deadline: UInt64? = state.withLock { state in
            guard case .receiving = state.phase, sendPastLibrary(response, &state, now: now) else { return nil }
            state.isWatched = true
            return state.deadline
        }
        guard let deadline else { return .NO }
        // A second entry for this connection: the one there is for a later time.
        core.supervisor.watch(self, until: deadline)
        return .YES
    }

    /// The request has come as a whole, or its answer is ready.
    func conclude(_ connection: OpaquePointer) -> MHD_Result {
        let ready: HTTPResponse?
        switch state.withLock({ $0.phase }) {
        case .receiving: ready = reception.verdict
        case .ready(let response): ready = response
        case .waiting, .suspended, .sending, .cutOff, .closed: return .NO
        }
        if let ready { return send(ready, on: connection) }
        guard var request = reception.request else { return .NO }
        reception.request = nil
        if let body = reception.body {
            reception.body = nil
            do {
                request.body = try body.finish()
            } catch {
                return send(core.response(for: RefusedRequest(error).refusal), on: connection)
            }
        }
        return answer(request, on: connection)
    }
}
