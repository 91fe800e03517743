import Synchronization

/// One caller that waits for one value: the first to come counts, be it the value, a deadline or a cancellation.
final class Waiter<Value: Sendable>: Sendable {
    private enum State {
        case idle
        case waiting(CheckedContinuation<Value, Never>)
        case fulfilled(Value)
    }

    private let state = Mutex(State.idle)

    /// Gives the value; does nothing when there was one before.
    func fulfil(_ value: Value) {
        let continuation = state.withLock { state -> CheckedContinuation<Value, Never>? in
            switch state {
            case .fulfilled: return nil
            case .idle:
                state = .fulfilled(value)
                return nil
            case .waiting(let continuation):
                state = .fulfilled(value)
                return continuation
            }
        }
        continuation?.resume(returning: value)
    }

    /// The value, or `cancelled` when the task is cancelled before it comes; to be called by one task at a time.
    func value(cancelled: Value) async -> Value {
        await withTaskCancellationHandler {
            await uncancelledValue()
        } onCancel: {
            fulfil(cancelled)
        }
    }

    /// The value, however long it takes, also in a task that was cancelled; to be called by one task at a time.
    func uncancelledValue() async -> Value {
        await withCheckedContinuation { continuation in
            let value = state.withLock { state -> Value? in
                switch state {
                case .fulfilled(let value): return value
                case .idle:
                    state = .waiting(continuation)
                    return nil
                case .waiting: preconditionFailure("one task waits for a value")
                }
            }
            if let value { continuation.resume(returning: value) }
        }
    }

    /// The value, or `late` when it does not come in time.
    func value(within limit: Duration, clock: any Clock<Duration>, late: Value, cancelled: Value) async -> Value {
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                do {
                    try await clock.sleep(for: limit)
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
