import Synchronization

/// Wakes one task: a signal that arrives while no task waits lets the next wait pass (an auto-reset event).
package final class Wakeup: Sendable {
    private enum State {
        case idle
        case signalled
        case waiting(CheckedContinuation<Void, Never>)
    }

    private let state = Mutex(State.idle)

    package init() {}

    /// Wakes the task that waits, or lets the next wait pass; several signals before a wait count as one.
    package func signal() {
        let previous = state.withLock { state in
            let previous = state
            if case .waiting = state { state = .idle } else { state = .signalled }
            return previous
        }
        if case .waiting(let continuation) = previous { continuation.resume() }
    }

    /// Waits for the next signal, also in a cancelled task; by one task at a time, or it traps.
    package func wait(isolation: isolated (any Actor)? = #isolation) async {
        await withCheckedContinuation { continuation in
            let mayPass = state.withLock { state in
                switch state {
                case .idle:
                    state = .waiting(continuation)
                    return false
                case .signalled:
                    state = .idle
                    return true
                case .waiting: preconditionFailure("a wakeup wakes one task")
                }
            }
            if mayPass { continuation.resume() }
        }
    }

    /// Waits for the next signal; cancellation of the task counts as one.
    package func waitUnlessCancelled() async {
        await withTaskCancellationHandler {
            await wait()
        } onCancel: {
            signal()
        }
    }
}
