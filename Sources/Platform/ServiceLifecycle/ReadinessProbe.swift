import Synchronization

/// A readiness check that runs on request, for example whether the broker responds.
///
/// Callers wait no longer than its limit, and it does not run again before it has ended.
final class ReadinessProbe: Sendable {
    private struct State {
        /// When the running check began.
        var startedAt: ContinuousClock.Instant?
        var waiting: [Int: CheckedContinuation<String?, Never>] = [:]
        var lastNumber = 0
    }

    let name: String
    private let limit: Duration
    private let probe: @Sendable () async -> String?
    private let state = Mutex(State())

    /// - Parameter probe: returns why the process is not ready; `nil` if it is.
    init(_ name: String, limit: Duration, _ probe: @escaping @Sendable () async -> String?) {
        self.name = name
        self.limit = limit
        self.probe = probe
    }

    /// Why the process is not ready; `nil` if it is.
    func reason() async -> String? {
        let number = state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
        let timer = Task {
            // Cancelled when the check ends first.
            do { try await Task.sleep(for: limit) } catch { return }
            timeOut(number)
        }
        let reason = await withCheckedContinuation { continuation in
            let mustStart = state.withLock { state in
                state.waiting[number] = continuation
                if state.startedAt != nil { return false }
                state.startedAt = ContinuousClock.now
                return true
            }
            if mustStart { Task { finish(await probe()) } }
        }
        timer.cancel()
        return reason
    }

    private func finish(_ reason: String?) {
        let waiting = state.withLock { state in
            defer { (state.waiting, state.startedAt) = ([:], nil) }
            return state.waiting.values.map(\.self)
        }
        for continuation in waiting { continuation.resume(returning: reason) }
    }

    private func timeOut(_ number: Int) {
        let (continuation, since) = state.withLock { ($0.waiting.removeValue(forKey: number), $0.startedAt) }
        let waited = since.map { ContinuousClock.now - $0 } ?? limit
        continuation?.resume(returning: "no response for \(waited.components.seconds) seconds")
    }
}
