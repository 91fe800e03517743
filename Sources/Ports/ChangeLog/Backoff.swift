/// Pauses between attempts at what a log, or a store, did not do: each twice the one before, up to the longest.
package struct Backoff: Sendable {
    private let range: ClosedRange<Duration>
    private var pause: Duration

    /// Begins with the shortest pause of a range.
    package init(_ range: ClosedRange<Duration>) {
        self.range = range
        pause = range.lowerBound
    }

    /// The pause before the next attempt.
    package mutating func next() -> Duration {
        defer { pause = min(pause * 2, range.upperBound) }
        return pause
    }

    /// Begins anew, after a success.
    package mutating func reset() { pause = range.lowerBound }
}
