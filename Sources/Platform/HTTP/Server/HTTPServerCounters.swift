import Synchronization

/// Counters since the start, and current values.
package struct HTTPServerCounters: Sendable {
    /// Current connections.
    package var connections = 0
    package var connectionsAccepted = 0
    /// Connections closed at once because of `maxConnections`.
    package var connectionsOverLimit = 0
    /// Connections closed at once because of `maxConnectionsPerClient`.
    package var connectionsOverClientLimit = 0
    /// Connections closed because a request was late and could not be answered with 408.
    package var connectionsTimedOut = 0
    /// Requests whose headers have arrived.
    package var requests = 0
    /// Current requests that are arriving or being answered, including streams.
    package var requestsUnderWay = 0
    /// Current bytes of request bodies.
    package var bytesInFlight = 0
    /// Current bytes of responses above 64 KiB that clients have not read yet.
    package var answerBytesInFlight = 0
    /// How often a changed certificate was loaded, and how often it could not be used.
    package var certificateLoads = 0
    package var certificateFailures = 0
    /// When the certificate of new connections expires, in seconds since 1970; `nil` without TLS.
    package var certificateExpiration: Int?
    /// By the reason's `rawValue`.
    fileprivate var refusals = [Int](repeating: 0, count: HTTPRefusalReason.allCases.count)

    /// Requests that the server refused for that reason.
    ///
    /// Requests that libmicrohttpd refuses, such as one with a malformed request line, are not counted but reported as
    /// `HTTPServerEvent.library`.
    package func refused(_ reason: HTTPRefusalReason) -> Int { refusals[reason.rawValue] }
}

/// The live counters; they are read one after the other, not as one snapshot.
final class LiveCounters: Sendable {
    let connectionsAccepted = Atomic<Int>(0)
    let connectionsOverLimit = Atomic<Int>(0)
    let connectionsOverClientLimit = Atomic<Int>(0)
    let connectionsTimedOut = Atomic<Int>(0)
    let requests = Atomic<Int>(0)
    let requestsUnderWay = Atomic<Int>(0)
    private let refusals = Mutex([Int](repeating: 0, count: HTTPRefusalReason.allCases.count))

    func count(_ reason: HTTPRefusalReason) { refusals.withLock { $0[reason.rawValue] += 1 } }

    func snapshot(connections: Int, bytesInFlight: Int, answerBytesInFlight: Int) -> HTTPServerCounters {
        var copy = HTTPServerCounters()
        copy.connections = connections
        copy.connectionsAccepted = connectionsAccepted.load(ordering: .relaxed)
        copy.connectionsOverLimit = connectionsOverLimit.load(ordering: .relaxed)
        copy.connectionsOverClientLimit = connectionsOverClientLimit.load(ordering: .relaxed)
        copy.connectionsTimedOut = connectionsTimedOut.load(ordering: .relaxed)
        copy.requests = requests.load(ordering: .relaxed)
        copy.requestsUnderWay = requestsUnderWay.load(ordering: .relaxed)
        copy.bytesInFlight = bytesInFlight
        copy.answerBytesInFlight = answerBytesInFlight
        copy.refusals = refusals.withLock { $0 }
        return copy
    }
}

extension Atomic where Value == Int {
    func add(_ difference: Int) { wrappingAdd(difference, ordering: .relaxed) }
}
