import Synchronization

/// A question that is put anew whenever somebody asks whether the process is ready, such as whether the broker answers.
///
/// It has nobody wait longer than its limit, and is not put again before it was answered.
final class ReadinessProbe: Sendable {
    private struct State {
        /// Since when the question stands, and who waits for the answer.
        var askedAt: ContinuousClock.Instant?
        var waiting: [Int: CheckedContinuation<String?, Never>] = [:]
        var lastNumber = 0
    }

    let name: String
    private let limit: Duration
    private let ask: @Sendable () async -> String?
    private let state = Mutex(State())

    /// - Parameter ask: says why the process is not ready; `nil` where it is.
    init(_ name: String, limit: Duration, _ ask: @escaping @Sendable () async -> String?) {
        self.name = name
        self.limit = limit
        self.ask = ask
    }

    /// Why the process is not ready; `nil` where it is.
    func reason() async -> String? {
        let number = state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
        let timer = Task {
            // Cancelled when the answer comes first.
            do { try await Task.sleep(for: limit) } catch { return }
            giveUp(number)
        }
        let reason = await withCheckedContinuation { continuation in
            let mustAsk = state.withLock { state in
                state.waiting[number] = continuation
                if state.askedAt != nil { return false }
                state.askedAt = ContinuousClock.now
                return true
            }
            if mustAsk { Task { answer(await ask()) } }
        }
        timer.cancel()
        return reason
    }

    private func answer(_ reason: String?) {
        let waiting = state.withLock { state in
            defer { (state.waiting, state.askedAt) = ([:], nil) }
            return state.waiting.values.map(\.self)
        }
        for continuation in waiting { continuation.resume(returning: reason) }
    }

    private func giveUp(_ number: Int) {
        let (continuation, since) = state.withLock { ($0.waiting.removeValue(forKey: number), $0.askedAt) }
        let waited = since.map { ContinuousClock.now - $0 } ?? limit
        continuation?.resume(returning: "no answer for \(waited.components.seconds) seconds")
    }
}
