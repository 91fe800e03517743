import Synchronization

/// The pending long polls, which a stop ends at once; bounded by the requests that may wait.
final class LongPolls: Sendable {
    private struct State {
        var isStopping = false
        var wakeups: [ObjectIdentifier: PollWakeup] = [:]
    }

    private let state = Mutex(State())

    /// Whether the gateway is stopping; then no request waits any more.
    var isStopping: Bool { state.withLock { $0.isStopping } }

    /// Adds a poll, unless the gateway is stopping.
    func add(_ wakeup: PollWakeup) {
        state.withLock { state in
            if !state.isStopping { state.wakeups[ObjectIdentifier(wakeup)] = wakeup }
        }
    }

    func remove(_ wakeup: PollWakeup) { state.withLock { $0.wakeups[ObjectIdentifier(wakeup)] = nil } }

    /// Wakes every poll, permanently.
    func stop() {
        let wakeups = state.withLock { state in
            state.isStopping = true
            defer { state.wakeups = [:] }
            return state.wakeups
        }
        for wakeup in wakeups.values { wakeup.signal() }
    }
}

/// Wakes one long poll: when a head moves, when the gateway stops, or when the poll's time is over.
final class PollWakeup: Sendable {
    private struct State {
        var isSignalled = false
        var waiting: CheckedContinuation<Void, Never>?
    }

    private let state = Mutex(State())

    /// Wakes the waiting task; without one, the next ``next()`` returns at once.
    func signal() {
        let waiting = state.withLock { state in
            let waiting = state.waiting.take()
            if waiting == nil { state.isSignalled = true }
            return waiting
        }
        waiting?.resume()
    }

    /// Waits for the next ``signal()`` or the task's cancellation; for one task at a time.
    func next() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isSignalled = state.withLock { state in
                    guard !state.isSignalled else {
                        state.isSignalled = false
                        return true
                    }
                    precondition(state.waiting == nil, "a long poll has one task")
                    state.waiting = continuation
                    return false
                }
                if isSignalled { continuation.resume() }
            }
        } onCancel: {
            signal()
        }
    }
}
