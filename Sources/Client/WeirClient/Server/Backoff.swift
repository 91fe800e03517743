/// The pauses between attempts that fail: exponential with full jitter, so that devices do not come back all at once.
package struct Backoff: Sendable {
    /// The mean of the first pause is half of it.
    static let first: Duration = .seconds(1)
    /// The longest pause after a failure that passes by itself.
    static let longest: Duration = .seconds(300)
    /// The longest pause after one that somebody has to mend; they begin with a sixteenth of it.
    static let longestRejected: Duration = .seconds(3600)

    /// Failures in a row.
    package private(set) var failures = 0
    private var random: any RandomNumberGenerator & Sendable

    package init(random: any RandomNumberGenerator & Sendable) { self.random = random }

    /// The pause after another failure.
    package mutating func pause(after error: SyncError) -> Duration {
        let bound =
            error.passes
            ? min(Self.longest, Self.first * (1 << min(failures, 20)))
            : min(Self.longestRejected, Self.longestRejected / 16 * (1 << min(failures, 20)))
        failures += 1
        let jitter = bound * Double.random(in: 0..<1, using: &random)
        return .seconds(error.retryAfter ?? 0) + jitter
    }

    /// After a success, also of a part.
    package mutating func reset() { failures = 0 }
}
