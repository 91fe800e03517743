import Foundation
import Synchronization
import WeirClient

/// A transport whose responses are a closure's, and which keeps the requests.
final class ScriptedTransport: Transport {
    struct Lost: Error {}

    private let respond: @Sendable (TransportRequest, _ number: Int) async throws -> TransportResponse
    private let received = Mutex<[TransportRequest]>([])

    /// - Parameter respond: gets the request and how many were sent before it.
    init(_ respond: @escaping @Sendable (TransportRequest, _ number: Int) async throws -> TransportResponse) {
        self.respond = respond
    }

    var requests: [TransportRequest] { received.withLock { $0 } }

    func send(_ request: TransportRequest) async throws -> TransportResponse {
        let number = received.withLock { requests in
            requests.append(request)
            return requests.count - 1
        }
        return try await respond(request, number)
    }

    /// The response as a stream of one piece.
    func open(_ request: TransportRequest) async throws -> TransportStream {
        let response = try await send(request)
        let (pieces, body) = AsyncThrowingStream.makeStream(of: [UInt8].self)
        body.yield(response.body)
        body.finish()
        return TransportStream(status: response.status, headers: response.headers, pieces: pieces)
    }
}

extension TransportResponse {
    static func json(_ text: String, status: Int = 200) -> TransportResponse {
        TransportResponse(status: status, headers: ["content-type": "application/json"], body: Array(text.utf8))
    }

    static func problem(_ status: Int, _ code: String, retryAfter: String? = nil) -> TransportResponse {
        var headers = ["content-type": "application/problem+json; charset=utf-8"]
        headers["retry-after"] = retryAfter
        let body = #"{"type":"/docs/errors.md","title":"t","status":\#(status),"code":"\#(code)","detail":"d"}"#
        return TransportResponse(status: status, headers: headers, body: Array(body.utf8))
    }
}

/// Counts from one.
final class Counter: Sendable {
    private let count = Mutex(0)

    func next() -> Int {
        count.withLock { count in
            count += 1
            return count
        }
    }
}
