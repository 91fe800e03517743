import Foundation
import Synchronization
import TestSignals
import WeirClient

/// A server with an event stream that a test writes, and responses that it can hold back.
final class EventfulServer: Transport {
    let server: ContractServer
    /// Is sent each request before it is answered.
    let arrived = Signal<String>()
    /// Is sent when an event stream is opened.
    let opened = Signal<Void>()
    private let events = Mutex<AsyncThrowingStream<[UInt8], any Error>.Continuation?>(nil)
    private let gate = Mutex<Gate?>(nil)
    private let refusal = Mutex<TransportResponse?>(nil)

    init(_ server: ContractServer) { self.server = server }

    /// Answers each request with this from now on; `nil`: as the server does.
    func refuse(_ response: TransportResponse?) { refusal.withLock { $0 = response } }

    /// Where a response is held back.
    private struct Gate {
        let request: String?
        /// How many such requests are answered before.
        var passing: Int
        let stream: AsyncStream<Void>
    }

    /// Holds a response back until the continuation finishes.
    ///
    /// - Parameters:
    ///   - request: such as `POST /v1/pull`; any by default.
    ///   - count: how many of these requests are answered before.
    func hold(_ request: String? = nil, after count: Int = 0) -> AsyncStream<Void>.Continuation {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
        gate.withLock { $0 = Gate(request: request, passing: count, stream: stream) }
        return continuation
    }

    func send(_ request: TransportRequest) async throws -> TransportResponse {
        let name = "\(request.method) \(request.url.path)"
        let gate = gate.withLock { gate -> AsyncStream<Void>? in
            guard var held = gate, held.request == nil || held.request == name else { return nil }
            if held.passing == 0 {
                gate = nil
                return held.stream
            }
            held.passing -= 1
            gate = held
            return nil
        }
        // Who waits for it finds the gate taken, whatever is sent next.
        arrived.send(name)
        if let gate {
            // It ends with the gate, or with the task.
            for await _ in gate {}
            try Task.checkCancellation()
        }
        if let refusal = refusal.withLock({ $0 }) { return refusal }
        return try await server.send(request)
    }

    func open(_ request: TransportRequest) async throws -> TransportStream {
        if let refusal = refusal.withLock({ $0 }) {
            throw SyncError(refusal, now: Date()) ?? SyncError(.unreachable, "")
        }
        let (pieces, body) = AsyncThrowingStream.makeStream(of: [UInt8].self)
        events.withLock { $0 = body }
        opened.send()
        return TransportStream(status: 200, pieces: pieces)
    }

    /// Writes an event.
    func event(head: Int64) {
        let text = "event: head\ndata: {\"syncId\":\"abc\",\"head\":\(head)}\n\n"
        events.withLock { _ = $0?.yield(Array(text.utf8)) }
    }

    func endEvents() { events.withLock { $0?.finish() } }
}
