import EmbeddedPipeline
import Foundation
import HTTP
import WeirClient

/// Sends requests to a pipeline in this process, without a socket.
struct DirectTransport: Transport {
    let server: TestServer

    func send(_ request: TransportRequest) async throws -> TransportResponse {
        let response = try await answer(request)
        switch response.content {
        case .bytes(let body):
            return TransportResponse(status: response.status, headers: response.fields, body: body)
        case .stream(let stream):
            defer { stream.close() }
            var body: [UInt8] = []
            while true {
                switch await stream.read() {
                case .bytes(let piece): body += piece
                case .end(.complete):
                    return TransportResponse(status: response.status, headers: response.fields, body: body)
                case .end(.broken): throw ConnectionLost()
                }
            }
        }
    }

    func open(_ request: TransportRequest) async throws -> TransportStream {
        let response = try await answer(request)
        // A piece is at most as large as the stream's buffer, and an event replaces an earlier one of its owner there.
        let (pieces, body) = AsyncThrowingStream.makeStream(
            of: [UInt8].self, bufferingPolicy: .bufferingOldest(Self.mostPieces))
        switch response.content {
        case .bytes(let bytes):
            body.yield(bytes)
            body.finish()
        case .stream(let stream):
            let reading = Task {
                defer { stream.close() }
                while true {
                    switch await stream.read() {
                    case .bytes(let piece):
                        if case .dropped = body.yield(piece) { return body.finish(throwing: ConnectionLost()) }
                    case .end(.complete): return body.finish()
                    case .end(.broken): return body.finish(throwing: ConnectionLost())
                    }
                }
            }
            body.onTermination = { _ in reading.cancel() }
        }
        return TransportStream(status: response.status, headers: response.fields, pieces: pieces)
    }

    private static let mostPieces = 1024

    /// A token is the name of its account, in the header that the server believes.
    private static func withAccount(_ headers: [String: String]) -> [String: String] {
        let scheme = "Bearer "
        guard let field = headers.first(where: { $0.key.lowercased() == "authorization" }),
            field.value.hasPrefix(scheme)
        else { return headers }
        var headers = headers
        headers[field.key] = nil
        headers["x-sync-id"] = field.value.dropFirst(scheme.count)
            .addingPercentEncoding(withAllowedCharacters: .alphanumerics)
        return headers
    }

    private func answer(_ request: TransportRequest) async throws -> HTTPResponse {
        let handler = try server.handler
        let url = URLComponents(string: request.url.absoluteString)
        guard
            let method = Array(request.method.utf8).withUnsafeBufferPointer({ HTTPMethod($0) }),
            var direct = HTTPRequest(
                direct: method, url?.percentEncodedPath ?? "/",
                query: (url?.queryItems ?? []).map { ($0.name, $0.value ?? "") },
                headers: Self.withAccount(request.headers).map { ($0.key, $0.value) }, body: request.body)
        else { throw ConnectionLost() }
        switch handler.bodyPolicy(for: direct) {
        case .refuse(let response): return response
        case .accept: break
        case .acceptUpTo(let size, caller: _, let context):
            // As the server refuses it.
            if direct.body.count > size { return HTTPResponse(status: 413) }
            direct.context = context
        case .stream: preconditionFailure("the client contract has no streamed body")
        }
        var response: HTTPResponse
        switch handler.respond(to: direct) {
        case .response(let ready): response = ready
        case .task(let work): response = await work()
        }
        try Task.checkCancellation()
        // It is read at once.
        response.reservation = nil
        return response
    }
}

/// A connection that is gone: the server is stopped, the device offline, or a fault has cut it.
struct ConnectionLost: Error, CustomStringConvertible {
    var description: String { "the connection was lost" }
}

extension HTTPResponse {
    /// By names in lower case.
    fileprivate var fields: [String: String] {
        Dictionary(headers.map { ($0.name.lowercased(), $0.value) }) { "\($0), \($1)" }
    }
}
