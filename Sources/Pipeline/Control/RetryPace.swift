/// Pauses between attempts: each twice the one before, up to the longest.
struct RetryPace {
    private let range: ClosedRange<Duration>
    private let clock: any Clock<Duration>
    private var next: Duration

    init(_ range: ClosedRange<Duration>, _ clock: any Clock<Duration>) {
        self.range = range
        self.clock = clock
        next = range.lowerBound
    }

    /// Waits before another attempt; whether there is to be one, or the task was cancelled.
    mutating func pause() async -> Bool {
        let pause = next
        next = min(next * 2, range.upperBound)
        do {
            try await clock.sleep(for: pause)
            return true
        } catch {
            return false
        }
    }

    /// Begins anew, after a success.
    mutating func reset() { next = range.lowerBound }
}
