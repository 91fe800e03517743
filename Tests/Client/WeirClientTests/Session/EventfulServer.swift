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
    private let gate = Mutex<AsyncStream<Void>?>(nil)
    private let refusal = Mutex<TransportResponse?>(nil)

    init(_ server: ContractServer) { self.server = server }

    /// Answers each request with this from now on; `nil`: as the server does.
    func refuse(_ response: TransportResponse?) { refusal.withLock { $0 = response } }

    /// Holds the next response back until the continuation finishes.
    func hold() -> AsyncStream<Void>.Continuation {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
        gate.withLock { $0 = stream }
        return continuation
    }

    func send(_ request: TransportRequest) async throws -> TransportResponse {
        arrived.send("\(request.method) \(request.url.path)")
        let gate = gate.withLock { gate in
            defer { gate = nil }
            return gate
        }
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
