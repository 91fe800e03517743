import Foundation

/// Who observes something, until it ends.
struct Observers<Observer: Sendable>: Sendable {
    private var known: [Int: Observer] = [:]
    private var next = 0
    private var isFinished = false

    var all: [Observer] { Array(known.values) }

    /// - Returns: the observer's number; `nil` once it has ended.
    mutating func add(_ observer: Observer) -> Int? {
        if isFinished { return nil }
        next += 1
        known[next] = observer
        return next
    }

    /// - Returns: the observer, which is released without the lock: what ends with it may call back.
    mutating func remove(_ number: Int) -> Observer? { known.removeValue(forKey: number) }

    /// - Returns: those whose observation ends.
    mutating func finish() -> [Observer] {
        isFinished = true
        defer { known = [:] }
        return all
    }
}

/// A value that changes, and who observes it.
package final class Broadcast<Value: Equatable & Sendable>: Sendable {
    private struct State {
        var value: Value
        var observers = Observers<AsyncStream<Value>.Continuation>()
    }

    private let state: Protected<State>
    /// Held while observers are notified, so that they get values in their order.
    ///
    /// The state's lock may not be held then: to resume a task that is being cancelled waits for its cancellation, in which the end of its
    /// stream waits for that lock.
    private let notifying = NSLock()

    package init(_ value: Value) { state = Protected(State(value: value)) }

    var current: Value { state.withLock { $0.value } }

    package func update(_ change: (inout Value) -> Void) {
        notifying.withLock {
            let (value, observers) = state.withLock { state in
                let before = state.value
                change(&state.value)
                return (state.value, state.value == before ? [] : state.observers.all)
            }
            for observer in observers { observer.yield(value) }
        }
    }

    /// The current value and each later one; who is slow sees the newest alone.
    package func stream() -> AsyncStream<Value> {
        let (stream, observer) = AsyncStream.makeStream(of: Value.self, bufferingPolicy: .bufferingNewest(1))
        let number = state.withLock { state in
            // Nobody waits for it yet.
            observer.yield(state.value)
            return state.observers.add(observer)
        }
        guard let number else {
            observer.finish()
            return stream
        }
        observer.onTermination = { [weak self] _ in _ = self?.state.withLock { $0.observers.remove(number) } }
        return stream
    }

    /// Ends all streams.
    package func finish() {
        for observer in state.withLock({ $0.observers.finish() }) { observer.finish() }
    }
}
