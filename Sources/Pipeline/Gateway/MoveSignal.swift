import Synchronization

/// Wakes one long poll: when a stream moved, when the gateway stops, or when its time is over.
final class MoveSignal: Sendable {
    private struct State {
        var hasFired = false
        var waiting: CheckedContinuation<Void, Never>?
    }

    private let state = Mutex(State())

    /// Wakes whoever waits, or lets the next one pass.
    func fire() {
        let waiting = state.withLock { state in
            let waiting = state.waiting.take()
            if waiting == nil { state.hasFired = true }
            return waiting
        }
        waiting?.resume()
    }

    /// Waits for the next ``fire()``; the task's cancellation counts as one.
    ///
    /// One task at a time.
    func next() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let mayPass = state.withLock { state in
                    guard !state.hasFired else {
                        state.hasFired = false
                        return true
                    }
                    precondition(state.waiting == nil, "a signal wakes one task")
                    state.waiting = continuation
                    return false
                }
                if mayPass { continuation.resume() }
            }
        } onCancel: {
            fire()
        }
    }
}

/// The long polls under way, which a stop ends at once; as many as requests may wait.
final class LongPolls: Sendable {
    private struct State {
        var isStopping = false
        var signals: [ObjectIdentifier: MoveSignal] = [:]
    }

    private let state = Mutex(State())

    /// Whether the gateway stops: nobody waits any more.
    var isStopping: Bool { state.withLock { $0.isStopping } }

    /// Adds a poll, unless the gateway stops: then nobody waits any more.
    func add(_ signal: MoveSignal) {
        state.withLock { state in
            if !state.isStopping { state.signals[ObjectIdentifier(signal)] = signal }
        }
    }

    /// Removes a poll that has its answer.
    func remove(_ signal: MoveSignal) { state.withLock { $0.signals[ObjectIdentifier(signal)] = nil } }

    /// Wakes every poll, for good.
    func stop() {
        let signals = state.withLock { state in
            state.isStopping = true
            defer { state.signals = [:] }
            return state.signals
        }
        for signal in signals.values { signal.fire() }
    }
}
