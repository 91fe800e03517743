import Synchronization

/// A value that arrives later: fulfilled once, awaited by any number of tasks.
///
/// The first fulfilment counts, be it the value, a deadline or a cancellation.
///
/// Public and inlinable, as ``FairQueue`` and ``AwaitableState``, so that other modules specialize it (ADR 15).
public final class Promise<Value: Sendable>: Sendable {
    /// No enum: the copies of one whose payloads are generic are made by way of the runtime.
    @usableFromInline struct State {
        /// `nil` until the promise is fulfilled.
        @usableFromInline var value: Value?
        /// One task waits in most cases, so the first continuation needs no array.
        @usableFromInline var first: CheckedContinuation<Value, Never>?
        @usableFromInline var others: [CheckedContinuation<Value, Never>] = []

        @inlinable init() {}
    }

    @usableFromInline let state: Mutex<State>

    /// A promise that nothing has fulfilled yet.
    @inlinable public init() { state = Mutex(State()) }

    /// Ends every wait with the value; `false`, and without effect, where the promise was fulfilled before.
    @inlinable @discardableResult
    public func fulfil(_ value: Value) -> Bool {
        let (isFirst, first, others) = state.withLock { state in
            let isFirst = state.value == nil
            if isFirst { state.value = value }
            defer { state.others = [] }
            return (isFirst, state.first.take(), state.others)
        }
        first?.resume(returning: value)
        for continuation in others { continuation.resume(returning: value) }
        return isFirst
    }

    /// Ends every wait with the value, for a promise that one owner fulfils once; traps where it was fulfilled before.
    @inlinable public func fulfilOnce(_ value: Value) {
        if !fulfil(value) { preconditionFailure("a promise is fulfilled once") }
    }

    /// The value, however long it takes, also in a cancelled task.
    @inlinable public func value() async -> Value {
        if let value = state.withLock({ $0.value }) { return value }
        return await withCheckedContinuation { continuation in
            let value: Value? = state.withLock { state in
                if let value = state.value { return value }
                if state.first == nil {
                    state.first = continuation
                } else {
                    state.others.append(continuation)
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
