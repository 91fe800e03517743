import Synchronization

/// What a server has done and holds; reading it costs a few loads.
package struct HTTPServerCounters: Sendable {
    /// Connections open now.
    package var connections = 0
    /// Connections taken since the start.
    package var connectionsAccepted = 0
    /// Connections closed at once because of `maxConnections`.
    package var connectionsOverLimit = 0
    /// Connections closed at once because of `maxConnectionsPerClient`.
    package var connectionsOverClientLimit = 0
    /// Connections closed because a request did not come in time and could not be answered with 408.
    package var connectionsTimedOut = 0
    /// Requests whose headers have come, since the start.
    package var requests = 0
    /// Requests that have come in part or are being answered now, streams included.
    package var requestsUnderWay = 0
    /// Bytes of request bodies held now.
    package var bytesInFlight = 0
    /// Bytes of larger answers that clients have not taken yet.
    package var answerBytesInFlight = 0
    /// Answers that the server made itself, since the start, by the reason's `rawValue`.
    fileprivate var refusals = [Int](repeating: 0, count: HTTPRefusalReason.allCases.count)

    /// How many answers the server made itself for that reason, since the start.
    ///
    /// What the library under it refuses, such as a request line without sense, is not counted; it is told as
    /// `HTTPServerEvent.library`.
    package func refused(_ reason: HTTPRefusalReason) -> Int { refusals[reason.rawValue] }
}

/// The live counters; each is right by itself, a snapshot is not one moment's.
final class LiveCounters: Sendable {
    let connectionsAccepted = Atomic<Int>(0)
    let connectionsOverLimit = Atomic<Int>(0)
    let connectionsOverClientLimit = Atomic<Int>(0)
    let connectionsTimedOut = Atomic<Int>(0)
    let requests = Atomic<Int>(0)
    let requestsUnderWay = Atomic<Int>(0)
    private let refusals = Mutex([Int](repeating: 0, count: HTTPRefusalReason.allCases.count))

    /// Notes an answer that the server made itself.
    func count(_ reason: HTTPRefusalReason) {
        refusals.withLock { $0[reason.rawValue] += 1 }
    }

    /// A copy of all.
    func snapshot(connections: Int, bytesInFlight: Int) -> HTTPServerCounters {
        var copy = HTTPServerCounters()
        copy.connections = connections
        copy.connectionsAccepted = connectionsAccepted.load(ordering: .relaxed)
        copy.connectionsOverLimit = connectionsOverLimit.load(ordering: .relaxed)
        copy.connectionsOverClientLimit = connectionsOverClientLimit.load(ordering: .relaxed)
        copy.connectionsTimedOut = connectionsTimedOut.load(ordering: .relaxed)
        copy.requests = requests.load(ordering: .relaxed)
        copy.requestsUnderWay = requestsUnderWay.load(ordering: .relaxed)
        copy.bytesInFlight = bytesInFlight
        copy.refusals = refusals.withLock { $0 }
        return copy
    }
}

extension Atomic where Value == Int {
    /// Adds to a counter that orders nothing else.
    func add(_ difference: Int) {
        wrappingAdd(difference, ordering: .relaxed)
    }
}
