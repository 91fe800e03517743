import Foundation
import Synchronization
import WeirClient

/// A device's network: it is offline, slow or faulty where a test says so.
public final class TestNetwork: Transport {
    fileprivate struct State {
        var isOnline = true
        /// How often the device has gone offline.
        var departures = 0
        var faults = FaultPlan.none
        /// Of the next requests, before those of the plan.
        var next: [NetworkFault] = []
        var delay: Duration = .zero
        var isCalm = false
        var log: [String] = []
        /// Ends the event streams that are open.
        var streams: [Int: @Sendable () -> Void] = [:]
        var lastStream = 0
    }

    private let transport: any Transport
    private let clock: TestClock?
    private let state = Mutex(State())

    /// - Parameters:
    ///   - transport: what requests are sent with that arrive.
    ///   - clock: what delays go by; `nil` where there are none.
    package init(_ transport: any Transport, clock: TestClock? = nil) {
        self.transport = transport
        self.clock = clock
    }

    // MARK: What tests say

    /// Whether requests arrive.
    public var isOnline: Bool { state.withLock { $0.isOnline } }

    /// Lets no request arrive until ``goOnline()``, ends event streams, and loses the answers of requests that are under way.
    public func goOffline() {
        let streams = state.withLock { state in
            state.isOnline = false
            state.departures += 1
            defer { state.streams = [:] }
            return state.streams.values
        }
        for end in streams { end() }
    }

    /// Lets requests arrive again.
    ///
    /// An app notices it when it tries the next time, or calls `nudge`.
    public func goOnline() { state.withLock { $0.isOnline = true } }

    /// Which requests have a fault from now on.
    public var faults: FaultPlan {
        get { state.withLock { $0.faults } }
        set { state.withLock { $0.faults = newValue } }
    }

    /// Gives the next requests a fault each, before those of ``faults``.
    public func failNext(_ faults: NetworkFault...) { state.withLock { $0.next += faults } }

    /// How long each request takes to the server, in the time of ``SyncKit/clock``.
    public var delay: Duration {
        get { state.withLock { $0.delay } }
        set { state.withLock { $0.delay = newValue } }
    }

    /// What was sent, and which fault it had: `POST /v1/sync lostAnswer`.
    public var log: [String] { state.withLock { $0.log } }

    /// Without faults and delays while devices converge.
    package func setCalm(_ isCalm: Bool) { state.withLock { $0.isCalm = isCalm } }

    // MARK: Requests

    /// Sends a request, unless it is lost.
    public func send(_ request: TransportRequest) async throws -> TransportResponse {
        let (fault, departures) = try await begin(request)
        let response: TransportResponse
        if let fault {
            response = try await fault.send(request, over: transport)
        } else {
            response = try await transport.send(request)
        }
        // A device that has gone offline meanwhile gets no response.
        try requireOnline(since: departures)
        return response
    }

    /// Opens an event stream, which ends when the device goes offline.
    public func open(_ request: TransportRequest) async throws -> TransportStream {
        let (fault, departures) = try await begin(request)
        var stream: TransportStream
        if let fault {
            stream = try await fault.open(request, over: transport)
        } else {
            stream = try await transport.open(request)
        }
        let (pieces, events) = AsyncThrowingStream.makeStream(of: [UInt8].self, bufferingPolicy: .bufferingOldest(1024))
        let reading = Task { [pieces = stream.pieces] in
            do {
                for try await piece in pieces {
                    if case .dropped = events.yield(piece) { throw ConnectionLost() }
                }
                events.finish()
            } catch {
                events.finish(throwing: error)
            }
        }
        let number = state.withLock { state -> Int? in
            guard state.departures == departures else { return nil }
            state.lastStream += 1
            state.streams[state.lastStream] = { events.finish(throwing: ConnectionLost()) }
            return state.lastStream
        }
        events.onTermination = { [weak self] _ in
            reading.cancel()
            if let number { self?.state.withLock { $0.streams[number] = nil } }
        }
        guard number != nil else {
            events.finish()
            throw ConnectionLost()
        }
        stream.pieces = pieces
        return stream
    }

    private func requireOnline(since departures: Int) throws {
        guard state.withLock({ $0.departures == departures }) else { throw ConnectionLost() }
    }

    /// The request's fault, and how often the device had been offline before; returns when it has had its delay.
    private func begin(_ request: TransportRequest) async throws -> (NetworkFault?, departures: Int) {
        let (fault, delay, departures) = try state.withLock { state -> (NetworkFault?, Duration, Int) in
            guard state.isOnline else {
                state.note(request, "offline")
                throw ConnectionLost()
            }
            if state.isCalm {
                state.note(request, nil)
                return (nil, .zero, state.departures)
            }
            let fault = state.next.isEmpty ? state.faults.next() : state.next.removeFirst()
            state.note(request, fault?.rawValue)
            return (fault, state.delay, state.departures)
        }
        if delay > .zero, let clock {
            try await clock.sleep(for: delay)
            try requireOnline(since: departures)
        }
        return (fault, departures)
    }
}

extension TestNetwork.State {
    /// More than a test reads; older lines are dropped.
    private static let mostLines = 10_000

    fileprivate mutating func note(_ request: TransportRequest, _ fault: String?) {
        if log.count == Self.mostLines { log.removeFirst(Self.mostLines / 2) }
        log.append("\(request.method) \(request.url.path)" + (fault.map { " \($0)" } ?? ""))
    }
}
