import Synchronization

/// Lets tasks wait until it is open; it may be closed again.
final class Gate: Sendable {
    private struct State {
        var isOpen = false
        var next: UInt64 = 0
        /// One entry for each suspended task, so bounded by the tasks there are; told whether the gate opened.
        var waiting: [UInt64: CheckedContinuation<Bool, Never>] = [:]
    }

    private let state = Mutex(State())

    var isOpen: Bool { state.withLock(\.isOpen) }

    /// Opens the gate and resumes everyone who waits; `false` where it was open already.
    @discardableResult
    func open() -> Bool {
        let waiting: [CheckedContinuation<Bool, Never>]? = state.withLock { state in
            guard !state.isOpen else { return nil }
            state.isOpen = true
            defer { state.waiting = [:] }
            return Array(state.waiting.values)
        }
        guard let waiting else { return false }
        for continuation in waiting { continuation.resume(returning: true) }
        return true
    }

    func close() {
        state.withLock { $0.isOpen = false }
    }

    /// Waits until the gate is open; throws where the task is cancelled before.
    func wait() async throws(CancellationError) {
        let ticket = state.withLock { state in
            state.next += 1
            return state.next
        }
        let opened = await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<Bool, Never>) in
                // A task is marked as cancelled before its handler runs: either the handler finds the continuation, or
                // the mark is seen here.
                let answer: Bool? = state.withLock { state in
                    if state.isOpen { return true }
                    if Task.isCancelled { return false }
                    state.waiting[ticket] = continuation
                    return nil
                }
                if let answer { continuation.resume(returning: answer) }
            }
        } onCancel: {
            state.withLock { $0.waiting.removeValue(forKey: ticket) }?.resume(returning: false)
        }
        guard opened else { throw CancellationError() }
    }
}
