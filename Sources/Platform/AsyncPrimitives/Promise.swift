import Synchronization

/// A value that arrives later: fulfilled once, awaited by any number of tasks.
///
/// The first fulfilment counts, be it the value, a deadline or a cancellation.
package final class Promise<Value: Sendable>: Sendable {
    private enum State {
        /// One task waits in most cases, so the first continuation needs no array.
        case pending(first: CheckedContinuation<Value, Never>?, others: [CheckedContinuation<Value, Never>])
        case fulfilled(Value)
    }

    private let state = Mutex(State.pending(first: nil, others: []))

    package init() {}

    /// Ends every wait with the value; `false`, and without effect, where the promise was fulfilled before.
    @discardableResult
    package func fulfil(_ value: Value) -> Bool {
        let previous = state.withLock { state in
            let previous = state
            if case .pending = state { state = .fulfilled(value) }
            return previous
        }
        guard case .pending(let first, let others) = previous else { return false }
        first?.resume(returning: value)
        for continuation in others { continuation.resume(returning: value) }
        return true
    }

    /// The value, however long it takes, also in a cancelled task.
    package func value() async -> Value {
        if case .fulfilled(let value) = state.withLock({ $0 }) { return value }
        return await withCheckedContinuation { continuation in
            let value: Value? = state.withLock { state in
                switch state {
                case .fulfilled(let value): return value
                case .pending(nil, _): state = .pending(first: continuation, others: [])
                case .pending(let first, let others):
                    state = .pending(first: first, others: others + [continuation])
                }
                return nil
            }
            if let value { continuation.resume(returning: value) }
        }
    }

    /// The value; cancellation of the task fulfils the promise with `cancelled`, for all who wait.
    package func value(cancelled: Value) async -> Value {
        await withTaskCancellationHandler {
            await value()
        } onCancel: {
            fulfil(cancelled)
        }
    }

    /// The value; the promise is fulfilled with `late` after `limit`, and with `cancelled` when the task is cancelled.
    package func value(
        within limit: Duration, clock: any Clock<Duration>, late: Value, cancelled: Value
    ) async -> Value {
        await value(late: late, cancelled: cancelled) { try await clock.sleep(for: limit) }
    }

    /// The value; the promise is fulfilled with `late` when `timeout` returns, and with `cancelled` when the task is cancelled.
    package func value(
        late: Value, cancelled: Value, timeout: @escaping @Sendable () async throws -> Void
    ) async -> Value {
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                do {
                    try await timeout()
                    self.fulfil(late)
                } catch {
                    // Cancelled: the value came first, or the caller was cancelled, which `value(cancelled:)` sees.
                }
            }
            let value = await value(cancelled: cancelled)
            group.cancelAll()
            return value
        }
    }
}
