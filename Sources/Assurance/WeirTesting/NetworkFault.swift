import Foundation
import WeirClient

/// What happens to a request and its response.
public enum NetworkFault: String, CaseIterable, Sendable {
    /// The request does not arrive.
    case lostRequest
    /// The server carries the request out, and its response does not arrive.
    case lostAnswer
    /// Half of the response arrives.
    case cutBody
    /// The request arrives twice; the second response arrives.
    case duplicate
    /// 401: the server does not accept the token.
    case unauthenticated
    /// 429: the device sends too much.
    case tooManyRequests
    /// 503: the server cannot answer at the moment.
    case unavailable
    /// The response is the page of a network that asks to log in.
    case loginPage
}

/// Which of a device's requests have a fault: so many of a hundred, of these kinds, by a seed.
public struct FaultPlan: Sendable {
    /// How many of a hundred requests have a fault.
    public var percent: Int
    /// The faults to choose from.
    public var kinds: [NetworkFault]
    private var random: TestRandom

    /// - Parameters:
    ///   - percent: how many of a hundred requests have a fault.
    ///   - kinds: the faults to choose from; all by default.
    ///   - seed: the same faults for the same seed.
    public init(percent: Int, kinds: [NetworkFault] = NetworkFault.allCases, seed: UInt64) {
        self.percent = percent
        self.kinds = kinds
        random = TestRandom(seed: seed)
    }

    /// No request has a fault.
    public static var none: FaultPlan { FaultPlan(percent: 0, seed: 0) }

    /// The next request's fault.
    mutating func next() -> NetworkFault? { random.chance(percent) ? kinds.randomElement(using: &random) : nil }
}

extension NetworkFault {
    /// Sends a request to which this happens.
    func send(_ request: TransportRequest, over transport: any Transport) async throws -> TransportResponse {
        if let response { return response }
        if self == .lostRequest { throw ConnectionLost() }
        var answer = try await transport.send(request)
        switch self {
        case .lostAnswer: throw ConnectionLost()
        case .cutBody: answer.body.removeLast((answer.body.count + 1) / 2)
        case .duplicate: answer = try await transport.send(request)
        case .lostRequest, .unauthenticated, .tooManyRequests, .unavailable, .loginPage: break
        }
        return answer
    }

    /// Opens an event stream to which this happens.
    func open(_ request: TransportRequest, over transport: any Transport) async throws -> TransportStream {
        if let response {
            return TransportStream(
                status: response.status, headers: response.headers,
                pieces: AsyncThrowingStream { pieces in
                    pieces.yield(response.body)
                    pieces.finish()
                })
        }
        switch self {
        case .lostRequest, .lostAnswer, .cutBody: throw ConnectionLost()
        default: return try await transport.open(request)
        }
    }

    /// What the device gets from another one than the server.
    private var response: TransportResponse? {
        switch self {
        case .unauthenticated: Self.problem(401, "unauthenticated")
        case .tooManyRequests: Self.problem(429, "rate_limited")
        case .unavailable: Self.problem(503, "overloaded")
        case .loginPage:
            TransportResponse(
                status: 200, headers: ["content-type": "text/html"], body: Array("<html>Log in</html>".utf8))
        case .lostRequest, .lostAnswer, .cutBody, .duplicate: nil
        }
    }

    private static func problem(_ status: Int, _ code: String) -> TransportResponse {
        TransportResponse(
            status: status, headers: ["content-type": "application/problem+json", "retry-after": "0"],
            body: Array(
                #"{"type":"about:blank","title":"a fault of the test","status":\#(status),"code":"\#(code)"}"#.utf8))
    }
}
