import Synchronization

/// Facts that a test waits for.
final class Signal<Fact: Sendable>: Sendable {
    private struct State {
        var facts: [Fact] = []
        var watchers: [(isMet: @Sendable ([Fact]) -> Bool, continuation: CheckedContinuation<Void, Never>)] = []
    }

    private let state = Mutex(State())

    var facts: [Fact] { state.withLock(\.facts) }

    func add(_ fact: Fact) {
        let met = state.withLock { state in
            state.facts.append(fact)
            let facts = state.facts
            let met = state.watchers.filter { $0.isMet(facts) }.map(\.continuation)
            state.watchers.removeAll { $0.isMet(facts) }
            return met
        }
        for continuation in met { continuation.resume() }
    }

    /// Waits until the facts are as a condition wants them.
    func until(_ isMet: @escaping @Sendable ([Fact]) -> Bool) async {
        await withCheckedContinuation { continuation in
            let isMetNow = state.withLock { state in
                if isMet(state.facts) { return true }
                state.watchers.append((isMet, continuation))
                return false
            }
            if isMetNow { continuation.resume() }
        }
    }
}
