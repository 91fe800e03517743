import Seeded
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
    private let count = Mutex(0)
    private let faultOf: @Sendable (_ number: Int) -> Fault?

    /// - Parameter number: of the request, from 0.
    init(_ server: ContractServer, _ fault: Fault, at number: Int) {
        self.server = server
        faultOf = { $0 == number ? fault : nil }
    }

    /// Faults happen to so many of a hundred requests.
    init(_ server: ContractServer, percent: Int, seed: UInt64) {
        self.server = server
        faultOf = { number in
            var random = SeededRandom(seed: seed &* 0x9E37_79B9 &+ UInt64(number))
            return random.chance(percent) ? Fault.allCases.randomElement(using: &random) : nil
        }
    }

    /// Whether more requests were sent.
    func hasSent(_ number: Int) -> Bool { count.withLock { $0 > number } }

    func send(_ request: TransportRequest) async throws -> TransportResponse {
        let number = count.withLock { count in
            count += 1
            return count - 1
        }
        switch faultOf(number) {
        case nil: return try await server.send(request)
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
