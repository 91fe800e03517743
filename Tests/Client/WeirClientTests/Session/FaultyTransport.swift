import Synchronization
import WeirClient

/// What happens to a request and its response.
enum Fault: CaseIterable, Sendable {
    case lostRequest
    case lostAnswer
    case cutBody
    case duplicate
    case rejectedToken
    case forbidden
    case tooMany
    case serverError
    case unavailable
    case wrongJSON
    case otherJSON
    case loginPage
}

/// A transport to which one request's fault happens.
final class FaultyTransport: Transport {
    private let server: ContractServer
    private let fault: Fault
    private let target: Int
    private let count = Mutex(0)

    /// - Parameter number: of the request, from 0.
    init(_ server: ContractServer, _ fault: Fault, at number: Int) {
        self.server = server
        self.fault = fault
        target = number
    }

    /// Whether as many requests were sent.
    var hasFailed: Bool { count.withLock { $0 > target } }

    func send(_ request: TransportRequest) async throws -> TransportResponse {
        let number = count.withLock { count in
            count += 1
            return count - 1
        }
        guard number == target else { return try await server.send(request) }
        switch fault {
        case .lostRequest: throw ScriptedTransport.Lost()
        case .lostAnswer:
            _ = try await server.send(request)
            throw ScriptedTransport.Lost()
        case .cutBody:
            var response = try await server.send(request)
            response.body.removeLast(response.body.count / 2)
            return response
        case .duplicate:
            _ = try await server.send(request)
            return try await server.send(request)
        case .rejectedToken: return .problem(401, "unauthenticated")
        case .forbidden: return .problem(403, "forbidden")
        case .tooMany: return .problem(429, "rate_limited", retryAfter: "1")
        case .serverError:
            _ = try await server.send(request)
            return .problem(500, "internal_error")
        case .unavailable: return .problem(503, "overloaded", retryAfter: "1")
        case .wrongJSON: return .json(#"{"syncId":7,"changes":{}}"#)
        case .otherJSON: return .json("[]")
        case .loginPage:
            return TransportResponse(
                status: 200, headers: ["content-type": "text/html"], body: Array("<html>Log in</html>".utf8))
        }
    }

    func open(_ request: TransportRequest) async throws -> TransportStream { try await server.open(request) }
}
