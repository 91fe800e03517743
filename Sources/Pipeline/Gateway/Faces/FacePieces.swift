import HTTP
import Synchronization

/// Sends the body of a response piece by piece, each made when the one before has found space in the connection's buffer.
final class FacePieces: Sendable {
    private let clock: GatewayClock
    /// The time in which a client must make space for a piece.
    private let patience: Duration
    /// Called with what failed after the response had begun.
    private let failed: @Sendable (any Error) -> Void
    /// Even while the client must make space for a piece, odd while the next one is made.
    private let steps = Atomic<Int>(0)

    init(clock: GatewayClock, patience: Duration, failed: @escaping @Sendable (any Error) -> Void) {
        self.clock = clock
        self.patience = patience
        self.failed = failed
    }

    func response(
        _ status: Int, _ headers: [HTTPField], length: Int? = nil, first: FacePiece,
        _ next: @escaping @Sendable () async throws -> FacePiece
    ) -> HTTPResponse {
        // The task ends with the response, also with one that is dropped before it is sent.
        let task = Mutex<Task<Void, Never>?>(nil)
        let stream = HTTPBodyStream(length: length) { _ in task.withLock { $0?.cancel() } }
        task.withLock { $0 = Task { await self.send(first, next, to: stream) } }
        return HTTPResponse(status: status, headers: headers, stream: stream)
    }

    private func send(
        _ first: FacePiece, _ next: @escaping @Sendable () async throws -> FacePiece, to stream: HTTPBodyStream
    ) async {
        let watchdog = Task { await self.watch(stream) }
        defer { watchdog.cancel() }
        var piece = first
        while true {
            guard await stream.send(piece.bytes) else { return }
            steps.wrappingAdd(1, ordering: .relaxed)
            if piece.isLast {
                steps.wrappingAdd(1, ordering: .relaxed)
                // Until then the piece is in memory, as what was reserved for the response.
                if await stream.drain() { stream.finish() }
                return
            }
            do {
                piece = try await next()
            } catch {
                // Otherwise the client has gone, which ends the task.
                if !Task.isCancelled { failed(error) }
                // The status is sent: only a broken connection tells the client that something is missing.
                return stream.abort()
            }
            steps.wrappingAdd(1, ordering: .relaxed)
        }
    }

    /// Breaks off a response whose client does not read.
    private func watch(_ stream: HTTPBodyStream) async {
        var known = -1
        while !stream.hasEnded {
            let count = steps.load(ordering: .relaxed)
            if count == known, count.isMultiple(of: 2) { return stream.abort() }
            known = count
            do { try await clock.sleep(clock.now() + patience) } catch { return }
        }
    }
}
