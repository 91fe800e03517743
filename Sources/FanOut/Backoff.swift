/// Pauses between attempts: each twice the one before, up to the longest.
struct Backoff {
    private let range: ClosedRange<Duration>
    private var pause: Duration

    init(_ range: ClosedRange<Duration>) {
        self.range = range
        pause = range.lowerBound
    }

    /// The pause before the next attempt.
    mutating func next() -> Duration {
        defer { pause = min(pause * 2, range.upperBound) }
        return pause
    }

    /// Begins anew, after a success.
    mutating func reset() { pause = range.lowerBound }
}
