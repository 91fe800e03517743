import Synchronization

/// Counts answers, so that a test can do something after so many more of them.
final class Progress: Sendable {
    private struct State {
        var count = 0
        var waiting: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
    }

    private let state = Mutex(State())

    /// An answer has come.
    func note() {
        let met = state.withLock { state in
            state.count += 1
            let count = state.count
            defer { state.waiting.removeAll { $0.count <= count } }
            return state.waiting.filter { $0.count <= count }
        }
        for waiting in met { waiting.continuation.resume() }
    }

    /// Waits for so many more answers, at least one.
    func wait(for more: Int) async {
        await withCheckedContinuation { continuation in
            state.withLock { $0.waiting.append(($0.count + more, continuation)) }
        }
    }
}
