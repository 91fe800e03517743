import ChangeLog
import Synchronization

/// What becomes of one producer's appends: none behind a failed one goes through (I1), and closing waits for all.
package final class ProducerState: Sendable {
    private struct State {
        var hasFailed = false
        var isClosed = false
        /// Appends enqueued, or waiting for room, and not resolved.
        var unresolved = 0
        /// As many as calls of `close()`.
        var closers: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    package init() {}

    /// Whether an append failed.
    package var hasFailed: Bool { state.withLock { $0.hasFailed } }

    /// Lets an append in; it must be left by one `leave(failed:)`.
    func enter() throws(ChangeLogError) {
        let refusal: ChangeLogError? = state.withLock { state in
            if state.hasFailed { return .producerFailed }
            if state.isClosed { return .closed("the producer") }
            state.unresolved += 1
            return nil
        }
        if let refusal { throw refusal }
    }

    /// Notes how an append ended.
    func leave(failed: Bool) {
        let closers: [CheckedContinuation<Void, Never>] = state.withLock { state in
            state.unresolved -= 1
            if failed { state.hasFailed = true }
            guard state.unresolved == 0 else { return [] }
            defer { state.closers = [] }
            return state.closers
        }
        for closer in closers { closer.resume() }
    }

    /// Refuses further appends and returns when those let in have ended.
    func close() async {
        await withCheckedContinuation { continuation in
            let hasEnded = state.withLock { state in
                state.isClosed = true
                if state.unresolved > 0 { state.closers.append(continuation) }
                return state.unresolved == 0
            }
            if hasEnded { continuation.resume() }
        }
    }
}
