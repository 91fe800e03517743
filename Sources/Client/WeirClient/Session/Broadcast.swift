/// A value that changes, and who observes it.
final class Broadcast<Value: Equatable & Sendable>: Sendable {
    private struct State {
        var value: Value
        var observers: [Int: AsyncStream<Value>.Continuation] = [:]
        var next = 0
        var isFinished = false
    }

    private let state: Protected<State>

    init(_ value: Value) { state = Protected(State(value: value)) }

    var current: Value { state.withLock { $0.value } }

    func update(_ change: (inout Value) -> Void) {
        state.withLock { state in
            let before = state.value
            change(&state.value)
            guard state.value != before else { return }
            for observer in state.observers.values { observer.yield(state.value) }
        }
    }

    /// The current value and each later one; who is slow sees the newest alone.
    func stream() -> AsyncStream<Value> {
        let (stream, observer) = AsyncStream.makeStream(of: Value.self, bufferingPolicy: .bufferingNewest(1))
        let number = state.withLock { state -> Int? in
            observer.yield(state.value)
            if state.isFinished { return nil }
            state.next += 1
            state.observers[state.next] = observer
            return state.next
        }
        guard let number else {
            observer.finish()
            return stream
        }
        observer.onTermination = { [weak self] _ in self?.remove(number) }
        return stream
    }

    private func remove(_ number: Int) {
        // What ends with it may call back, so it is released without the lock.
        let observer = state.withLock { $0.observers.removeValue(forKey: number) }
        _ = observer
    }

    /// Ends all streams.
    func finish() {
        let observers = state.withLock { state in
            state.isFinished = true
            defer { state.observers = [:] }
            return Array(state.observers.values)
        }
        for observer in observers { observer.finish() }
    }
}
