import Seeded
import Synchronization
import WeirClient

/// What happens to a request and its response.
enum Fault: CaseIterable, Sendable {
    case lostRequest
    case lostAnswer
    /// The answer arrives after other things have happened: those of ``FaultyTransport/whileLate(_:)``.
    case lateAnswer
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
    private struct State {
        var count = 0
        var whileLate: @Sendable () async throws -> Void = {}
        /// Whether an answer is late; other requests have no faults then.
        var isLate = false
        var failures: [String] = []
    }

    private let server: ContractServer
    private let state = Mutex(State())
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
    func hasSent(_ number: Int) -> Bool { state.withLock { $0.count > number } }

    /// Sets what happens between an answer of the server and its late arrival.
    func whileLate(_ body: @escaping @Sendable () async throws -> Void) { state.withLock { $0.whileLate = body } }

    /// What failed of that, but for its cancellation.
    var failures: [String] { state.withLock { $0.failures } }

    func send(_ request: TransportRequest) async throws -> TransportResponse {
        let fault = state.withLock { state -> Fault? in
            if state.isLate { return nil }
            state.count += 1
            return faultOf(state.count - 1)
        }
        switch fault {
        case nil: return try await server.send(request)
        case .lostRequest: throw ScriptedTransport.Lost()
        case .lostAnswer:
            _ = try await server.send(request)
            throw ScriptedTransport.Lost()
        case .lateAnswer:
            let response = try await server.send(request)
            await beLate()
            return response
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

    private func beLate() async {
        let body = state.withLock { state in
            state.isLate = true
            return state.whileLate
        }
        do {
            try await body()
        } catch is CancellationError {
            // The request was given up.
        } catch {
            state.withLock { $0.failures.append("\(error)") }
        }
        state.withLock { $0.isLate = false }
    }

    func open(_ request: TransportRequest) async throws -> TransportStream { try await server.open(request) }
}
