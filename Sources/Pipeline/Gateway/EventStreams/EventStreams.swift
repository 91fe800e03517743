import FanOutLink
import HTTP
import SyncModel
import Synchronization

extension GatewayHandler {
    /// `GET /v1/watch`: server-sent events with the heads of every granted owner.
    func watch(_ request: HTTPRequest, _ caller: Caller) -> HTTPHandlerResult {
        let headers = [HTTPField("Content-Type", "text/event-stream"), HTTPField("Cache-Control", "no-store")]
        if request.method == .head { return .response(HTTPResponse(status: 200, headers: headers)) }
        return inTask {
            HTTPResponse(
                status: 200, headers: headers, stream: try await self.eventStreams.open(for: caller, over: self.link))
        }
    }
}

/// The open event streams.
///
/// Moves are written on the fan-out's thread into each stream's bounded buffer; one timer sends all keep-alives.
final class EventStreams: Sendable {
    private struct State {
        var isStopping = false
        var streams: [Int: Entry] = [:]
        var next = 0
    }

    private struct Entry {
        let stream: EventStream
        /// The only device of the caller's credentials.
        let device: Device?
        var subscription: (any FanOutSubscription)?
    }

    /// Room for some events of about 60 bytes; beyond it, one head of each owner waits.
    private static let bufferBytes = 4 << 10

    private let maximum: Int
    private let clock: GatewayClock
    private let state = Mutex(State())

    init(maximum: Int, clock: GatewayClock) {
        self.maximum = maximum
        self.clock = clock
    }

    /// Opens a stream that begins with the owners' heads and then sends every move.
    func open(for caller: Caller, over link: some FanOutLink) async throws -> HTTPBodyStream {
        let owners = caller.grants.map(\.owner)
        let number = state.withLock { state in
            state.next += 1
            return state.next
        }
        let body = HTTPBodyStream(capacity: Self.bufferBytes) { [weak self] _ in self?.remove(number) }
        let stream = EventStream(body, until: caller.validFor.map { clock.now() + $0 })
        try add(stream, number, caller.device.map { Device(caller: caller.syncID, knowledgeID: $0) })
        // Subscribed before the heads are read, so that no move is missed.
        keep(link.subscribe(to: owners) { owner, head in stream.move(owner, to: head) }, number)
        do {
            let heads = try await link.heads(of: owners)
            try Task.checkCancellation()
            guard isOpen(number) else { throw Problem(.notReady, "the server is stopping") }
            stream.begin(zip(owners, heads).map { ($0, $1) })
        } catch {
            // A body that never reaches a connection does not call its `onEnd`.
            remove(number)
            throw error
        }
        return body
    }

    /// Sends a comment to every stream, and removes those that have ended.
    func sendKeepAlives() {
        let now = clock.now()
        for (number, entry) in state.withLock({ $0.streams }) {
            if case .ended = entry.stream.keepAlive(at: now) { remove(number) }
        }
    }

    var count: Int { state.withLock { $0.streams.count } }

    /// Ends every stream, and opens no more.
    func stop() {
        let streams = state.withLock { state in
            state.isStopping = true
            defer { state.streams = [:] }
            return state.streams
        }
        for entry in streams.values {
            entry.subscription?.cancel()
            entry.stream.finish()
        }
    }

    /// Ends the streams whose credentials are for a device that may not go on.
    func end(where isRevoked: (Device) -> Bool) {
        for (number, entry) in state.withLock({ $0.streams }) where entry.device.map(isRevoked) == true {
            entry.stream.finish()
            remove(number)
        }
    }

    private func add(_ stream: EventStream, _ number: Int, _ device: Device?) throws(Problem) {
        let problem: Problem? = state.withLock { state in
            if state.isStopping { return Problem(.notReady, "the server is stopping") }
            if state.streams.count >= maximum {
                return Problem(.overloaded, "\(maximum) event streams are open already")
            }
            state.streams[number] = Entry(stream: stream, device: device)
            return nil
        }
        if let problem { throw problem }
    }

    /// Keeps a subscription until its stream is removed.
    private func keep(_ subscription: any FanOutSubscription, _ number: Int) {
        let isKept = state.withLock { state in
            state.streams[number]?.subscription = subscription
            return state.streams[number] != nil
        }
        if !isKept { subscription.cancel() }
    }

    private func isOpen(_ number: Int) -> Bool { state.withLock { $0.streams[number] != nil } }

    private func remove(_ number: Int) {
        state.withLock { $0.streams.removeValue(forKey: number) }?.subscription?.cancel()
    }
}
