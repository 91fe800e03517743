import Synchronization

/// A queue of events that a test awaits one by one.
package final class Signal<Value: Sendable>: Sendable {
    private struct State {
        var values: [Value] = []
        var next = 0
        /// By the order in which they have come.
        var waiting: [(number: Int, continuation: CheckedContinuation<Value?, Never>)] = []
        var cancelled: Set<Int> = []
    }

    private let state = Mutex(State())

    package init() {}

    package func send(_ value: Value) {
        let waiter: CheckedContinuation<Value?, Never>? = state.withLock { state in
            if !state.waiting.isEmpty { return state.waiting.removeFirst().continuation }
            state.values.append(value)
            return nil
        }
        waiter?.resume(returning: value)
    }

    /// Waits for the next event, also in a task that is cancelled, as what a test holds back does.
    package func next() async -> Value {
        guard let value = await wait(number()) else { preconditionFailure("nothing has cancelled it") }
        return value
    }

    /// Waits for the next event until the task is cancelled, which a test's time limit does.
    ///
    /// - Throws: `CancellationError`.
    package func nextOrCancellation() async throws -> Value {
        let number = number()
        let value = await withTaskCancellationHandler {
            await wait(number)
        } onCancel: {
            cancel(number)
        }
        guard let value else { throw CancellationError() }
        return value
    }

    private func number() -> Int {
        state.withLock { state in
            state.next += 1
            return state.next
        }
    }

    /// - Returns: `nil` if it was cancelled.
    private func wait(_ number: Int) async -> Value? {
        await withCheckedContinuation { continuation in
            let value: Value?? = state.withLock { state in
                if !state.values.isEmpty { return .some(state.values.removeFirst()) }
                if state.cancelled.remove(number) != nil { return .some(nil) }
                state.waiting.append((number, continuation))
                return nil
            }
            if let value { continuation.resume(returning: value) }
        }
    }

    private func cancel(_ number: Int) {
        let waiter: CheckedContinuation<Value?, Never>? = state.withLock { state in
            if let place = state.waiting.firstIndex(where: { $0.number == number }) {
                return state.waiting.remove(at: place).continuation
            }
            state.cancelled.insert(number)
            return nil
        }
        waiter?.resume(returning: nil)
    }
}

extension Signal where Value == Void {
    package func send() { send(()) }
}
