import Synchronization

/// A value that arrives later: fulfilled once, awaited by any number of tasks.
///
/// The first fulfilment counts, be it the value, a deadline or a cancellation.
///
/// Public and inlinable, as ``FairQueue`` and ``AwaitableState``, so that other modules specialize it (ADR 15).
public final class Promise<Value: Sendable>: Sendable {
    @usableFromInline enum State {
        /// One task waits in most cases, so the first continuation needs no array.
        case pending(first: CheckedContinuation<Value, Never>?, others: [CheckedContinuation<Value, Never>])
        case fulfilled(Value)
    }

    @usableFromInline let state: Mutex<State>

    /// A promise that nothing has fulfilled yet.
    @inlinable public init() { state = Mutex(.pending(first: nil, others: [])) }

    /// Ends every wait with the value; `false`, and without effect, where the promise was fulfilled before.
    @inlinable @discardableResult
    public func fulfil(_ value: Value) -> Bool {
        let waiting: (first: CheckedContinuation<Value, Never>?, others: [CheckedContinuation<Value, Never>])? =
            state.withLock { state in
                guard case .pending(let first, let others) = state else { return nil }
                state = .fulfilled(value)
                return (first, others)
            }
        guard let waiting else { return false }
        waiting.first?.resume(returning: value)
        for continuation in waiting.others { continuation.resume(returning: value) }
        return true
    }

    /// The value, however long it takes, also in a cancelled task.
    @inlinable public func value() async -> Value {
        let known: Value? = state.withLock { state in
            if case .fulfilled(let value) = state { value } else { nil }
        }
        if let known { return known }
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
    @inlinable public func value(cancelled: Value) async -> Value {
        await withTaskCancellationHandler {
            await value()
        } onCancel: {
            fulfil(cancelled)
        }
    }

    /// The value; the promise is fulfilled with `late` after `limit`, and with `cancelled` when the task is cancelled.
    @inlinable public func value(
        within limit: Duration, clock: any Clock<Duration>, late: Value, cancelled: Value
    ) async -> Value {
        await value(late: late, cancelled: cancelled) { try await clock.sleep(for: limit) }
    }

    /// The value; the promise is fulfilled with `late` when `timeout` returns, and with `cancelled` when the task is cancelled.
    @inlinable public func value(
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
