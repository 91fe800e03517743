import Synchronization

/// A queue of events that a test awaits one by one.
package final class Signal<Value: Sendable>: Sendable {
    private struct State {
        var values: [Value] = []
        var waiting: [CheckedContinuation<Value, Never>] = []
    }

    private let state = Mutex(State())

    package init() {}

    package func send(_ value: Value) {
        let waiter: CheckedContinuation<Value, Never>? = state.withLock { state in
            if !state.waiting.isEmpty { return state.waiting.removeFirst() }
            state.values.append(value)
            return nil
        }
        waiter?.resume(returning: value)
    }

    /// Waits for the next event.
    package func next() async -> Value {
        await withCheckedContinuation { continuation in
            let value: Value? = state.withLock { state in
                if !state.values.isEmpty { return state.values.removeFirst() }
                state.waiting.append(continuation)
                return nil
            }
            if let value { continuation.resume(returning: value) }
        }
    }
}

extension Signal where Value == Void {
    package func send() { send(()) }
}
