import Synchronization

/// Counts what devices do, so that a test can act after so many more requests and answers, whatever the time.
final class Progress: Sendable {
    private struct State {
        var count = 0
        var waiting: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
    }

    private let state = Mutex(State())

    /// Counts a request that is about to be sent, or an answer.
    func record() {
        let met = state.withLock { state in
            state.count += 1
            let count = state.count
            defer { state.waiting.removeAll { $0.count <= count } }
            return state.waiting.filter { $0.count <= count }
        }
        for waiting in met { waiting.continuation.resume() }
    }

    /// Waits for so many more requests and answers, at least one.
    func wait(for more: Int) async {
        await withCheckedContinuation { continuation in
            state.withLock { $0.waiting.append(($0.count + more, continuation)) }
        }
    }
}

/// Set once, read by many.
final class StopFlag: Sendable {
    private let flag = Atomic(false)

    var isSet: Bool { flag.load(ordering: .relaxed) }

    func set() { flag.store(true, ordering: .relaxed) }
}
