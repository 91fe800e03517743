import ChangeLog
import Synchronization

/// What a test has the writer do.
final class WriteFaults: Sendable {
    /// How an append fails.
    struct Fault: Sendable {
        let error: ChangeLogError
        let isStored: Bool
    }

    private struct State {
        var isPaused = false
        var hasCrashed = false
        /// As many as the test asked for.
        var faults: [Fault] = []
        /// The writer, while it is paused with something to write.
        var writer: CheckedContinuation<Void, Never>?
    }

    private let state = Mutex(State())

    var hasCrashed: Bool { state.withLock { $0.hasCrashed } }

    func pause() { state.withLock { $0.isPaused = true } }

    func resume() {
        let writer = state.withLock { state in
            state.isPaused = false
            return state.writer.take()
        }
        writer?.resume()
    }

    /// From now on nothing is stored.
    func crash() { state.withLock { $0.hasCrashed = true } }

    func add(_ fault: Fault) { state.withLock { $0.faults.append(fault) } }

    /// The fault that the next append has.
    func next() -> Fault? { state.withLock { $0.faults.isEmpty ? nil : $0.faults.removeFirst() } }

    func waitWhilePaused() async {
        await withCheckedContinuation { continuation in
            let isPaused = state.withLock { state in
                if state.isPaused { state.writer = continuation }
                return state.isPaused
            }
            if !isPaused { continuation.resume() }
        }
    }
}
