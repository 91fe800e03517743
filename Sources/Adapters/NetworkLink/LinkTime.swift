import Synchronization

/// The time that answers are measured in: a clock, counted from the moment at which an end was made.
struct LinkTime: Sendable {
    /// The time now.
    let now: @Sendable () -> Duration
    /// Waits for a while; throws when the task is cancelled before.
    let sleep: @Sendable (Duration) async throws -> Void

    init(_ clock: some Clock<Duration>) {
        let start = clock.now
        now = { start.duration(to: clock.now) }
        sleep = { try await clock.sleep(for: $0) }
    }

    /// What is left until a deadline, not below zero.
    func remaining(until deadline: Duration) -> Duration { max(.zero, deadline - now()) }

    /// Calls a body at each beat until the task is cancelled.
    func beat(every interval: Duration, _ body: @escaping @Sendable () -> Void) -> Task<Void, Never> {
        Task {
            while true {
                // Cancelled when the end stops.
                do { try await sleep(interval) } catch { return }
                body()
            }
        }
    }
}

/// One value that somebody waits for: the first to come counts.
final class LinkWaiter<Value: Sendable>: Sendable {
    private enum State {
        case empty
        case waiting(CheckedContinuation<Value, Never>)
        case full(Value)
    }

    private let state = Mutex(State.empty)

    /// Gives the value; false when there was one before.
    @discardableResult
    func fulfil(_ value: Value) -> Bool {
        let (isFirst, continuation) = state.withLock { state -> (Bool, CheckedContinuation<Value, Never>?) in
            switch state {
            case .full: return (false, nil)
            case .empty:
                state = .full(value)
                return (true, nil)
            case .waiting(let continuation):
                state = .full(value)
                return (true, continuation)
            }
        }
        continuation?.resume(returning: value)
        return isFirst
    }

    /// The value, or `cancelled` when the task is cancelled before it comes; for one task at a time.
    func value(cancelled: Value) async -> Value {
        await withTaskCancellationHandler {
            await value()
        } onCancel: {
            fulfil(cancelled)
        }
    }

    /// The value, in a task that was cancelled, too; for one task at a time.
    func value() async -> Value {
        await withCheckedContinuation { continuation in
            let value = state.withLock { state -> Value? in
                switch state {
                case .full(let value): return value
                case .empty:
                    state = .waiting(continuation)
                    return nil
                case .waiting: preconditionFailure("one task waits for a value")
                }
            }
            if let value { continuation.resume(returning: value) }
        }
    }
}
