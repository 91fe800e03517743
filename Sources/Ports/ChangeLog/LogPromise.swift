import Synchronization

/// What an adapter will know later: fulfilled once, awaited any number of times.
///
/// An adapter fulfils every promise that it made, at the latest when it is closed, so a wait always ends.
package final class LogPromise<Value: Sendable>: Sendable {
    private typealias Outcome = Result<Value, ChangeLogError>

    private enum State {
        /// As many as callers; mostly one.
        case waiting([CheckedContinuation<Outcome, Never>])
        case fulfilled(Outcome)
    }

    private let state = Mutex(State.waiting([]))

    /// Makes a promise.
    package init() {}

    /// Ends every wait; traps when it did before.
    package func fulfil(_ result: Result<Value, ChangeLogError>) {
        let waiting = state.withLock { state in
            guard case .waiting(let waiting) = state else { preconditionFailure("a promise is fulfilled once") }
            state = .fulfilled(result)
            return waiting
        }
        for continuation in waiting { continuation.resume(returning: result) }
    }

    /// Waits for the promise to be fulfilled; cancellation does not cut the wait short.
    package func value() async throws(ChangeLogError) -> Value { try await outcome().get() }

    fileprivate func outcome() async -> Result<Value, ChangeLogError> {
        if case .fulfilled(let outcome) = state.withLock({ $0 }) { return outcome }
        return await withCheckedContinuation { continuation in
            let outcome: Outcome? = state.withLock { state in
                switch state {
                case .fulfilled(let outcome): return outcome
                case .waiting(let waiting):
                    state = .waiting(waiting + [continuation])
                    return nil
                }
            }
            if let outcome { continuation.resume(returning: outcome) }
        }
    }
}

extension LogPromise<[Int64]> {
    /// What a producer hands out.
    package var receipt: AppendReceipt { AppendReceipt { await self.outcome() } }
}
