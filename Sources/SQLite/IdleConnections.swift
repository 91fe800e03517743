import Synchronization

/// The connections of a pool that nobody uses, or else the callers that wait for one, in the order they came.
final class IdleConnections: Sendable {
    private struct Waiter {
        let id: UInt64
        let continuation: CheckedContinuation<HostedConnection, any Error>
    }

    private struct State {
        /// The one used last on top: its cache is the warmest.
        var idle: [HostedConnection]
        /// Bounded by the admission to the pool; so short that moving it up by one costs nothing that counts.
        var waiting: [Waiter] = []
        var nextID: UInt64 = 0
    }

    private let state: Mutex<State>

    init(_ connections: [HostedConnection]) {
        state = Mutex(State(idle: connections))
    }

    /// Takes a connection out, waiting for one if need be; it must be given back.
    ///
    /// - Throws: `CancellationError` when the caller is cancelled while it waits.
    func take() async throws -> HostedConnection {
        let id = state.withLock { state in
            state.nextID += 1
            return state.nextID
        }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let outcome: Result<HostedConnection, any Error>? = state.withLock { state in
                    // Asked under the lock: a cancellation that comes later finds the waiter in the line.
                    if Task.isCancelled { return .failure(CancellationError()) }
                    if let connection = state.idle.popLast() { return .success(connection) }
                    state.waiting.append(Waiter(id: id, continuation: continuation))
                    return nil
                }
                if let outcome { continuation.resume(with: outcome) }
            }
        } onCancel: {
            let waiter: Waiter? = state.withLock { state in
                state.waiting.firstIndex { $0.id == id }.map { state.waiting.remove(at: $0) }
            }
            waiter?.continuation.resume(throwing: CancellationError())
        }
    }

    /// Gives a connection back, or on to the caller that has waited longest.
    func giveBack(_ connection: HostedConnection) {
        let waiter: Waiter? = state.withLock { state in
            if !state.waiting.isEmpty { return state.waiting.removeFirst() }
            state.idle.append(connection)
            return nil
        }
        waiter?.continuation.resume(returning: connection)
    }
}
