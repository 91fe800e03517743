import Synchronization

/// Counts the calls inside a database, refuses those above a limit, and tells when the last one has left.
final class CallLimiter: Sendable {
    private struct State {
        var inside = 0
        var isClosed = false
        var drained: CheckedContinuation<Void, Never>?
    }

    let limit: Int
    private let state = Mutex(State())

    init(limit: Int) {
        precondition(limit > 0, "a limit of calls is at least 1")
        self.limit = limit
    }

    /// Lets one call in; it must `leave()`.
    func enter() throws(DatabaseUnavailable) {
        let refusal: DatabaseUnavailable? = state.withLock { state in
            if state.isClosed { return .closed }
            if state.inside == limit { return .overloaded(limit: limit) }
            state.inside += 1
            return nil
        }
        if let refusal { throw refusal }
    }

    /// Lets a call out.
    func leave() {
        let drained: CheckedContinuation<Void, Never>? = state.withLock { state in
            state.inside -= 1
            return state.inside == 0 ? state.drained.take() : nil
        }
        drained?.resume()
    }

    /// Lets nobody in from now on.
    func close() {
        state.withLock { $0.isClosed = true }
    }

    /// Returns when the last call has left; after `close()`, and called once.
    func drain() async {
        await withCheckedContinuation { continuation in
            let isDrained = state.withLock { state in
                precondition(state.isClosed && state.drained == nil, "an callLimiter is closed, then drained once")
                if state.inside > 0 { state.drained = continuation }
                return state.inside == 0
            }
            if isDrained { continuation.resume() }
        }
    }
}
