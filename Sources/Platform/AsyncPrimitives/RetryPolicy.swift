/// How long to pause before something that failed is tried again: exponential backoff within a range.
package struct RetryPolicy: Sendable {
    /// The first and the longest pause; each is twice the one before, and equal bounds make all pauses equal.
    package let delays: ClosedRange<Duration>
    /// How long the pauses may last in total; `nil` for no limit.
    package let limit: Duration?
    /// Measures the pauses.
    package let clock: any Clock<Duration>

    package init(
        delays: ClosedRange<Duration>, limit: Duration? = nil, clock: any Clock<Duration> = ContinuousClock()
    ) {
        self.delays = delays
        self.limit = limit
        self.clock = clock
    }

    /// Runs a body until it succeeds.
    ///
    /// - Parameters:
    ///   - isRetriable: whether another attempt may succeed after this failure.
    ///   - willRetry: called before each pause with the failure and the number of the attempt that failed, from 1: for a
    ///     log line or a metric.
    /// - Throws: the failure that is not retriable, that comes after the limit, or in whose pause the task is cancelled.
    package func run<Value, Failure: Error>(
        isolation: isolated (any Actor)? = #isolation, _ body: () async throws(Failure) -> Value,
        retryIf isRetriable: (Failure) -> Bool, willRetry: (Failure, Int) -> Void = { _, _ in }
    ) async throws(Failure) -> Value {
        var backoff = Backoff(self)
        while true {
            let failure: Failure
            do throws(Failure) {
                return try await body()
            } catch {
                failure = error
            }
            guard isRetriable(failure), backoff.isWithinLimit else { throw failure }
            let delay = backoff.next()
            willRetry(failure, backoff.attempts)
            do { try await clock.sleep(for: delay) } catch { throw failure }
        }
    }
}

/// The pauses of a ``RetryPolicy`` in sequence, for loops that decide themselves what a failure means.
package struct Backoff: Sendable {
    private let policy: RetryPolicy
    private var delay: Duration
    private var total = Duration.zero
    /// How many pauses there were since the beginning or the last reset.
    package private(set) var attempts = 0

    package init(_ policy: RetryPolicy) {
        self.policy = policy
        delay = policy.delays.lowerBound
    }

    /// Whether the policy's limit allows another pause.
    package var isWithinLimit: Bool { policy.limit.map { total < $0 } ?? true }

    /// The next pause, for a caller that sleeps itself.
    package mutating func next() -> Duration {
        defer {
            total += delay
            attempts += 1
            delay = min(delay * 2, policy.delays.upperBound)
        }
        return delay
    }

    /// Sleeps for the next pause.
    ///
    /// - Parameter willPause: called with the pause before it begins.
    /// - Throws: `CancellationError` when the task is cancelled meanwhile.
    package mutating func pause(
        isolation: isolated (any Actor)? = #isolation, _ willPause: (Duration) -> Void = { _ in }
    ) async throws(CancellationError) {
        let delay = next()
        willPause(delay)
        do { try await policy.clock.sleep(for: delay) } catch { throw CancellationError() }
    }

    /// Starts again with the first pause, after a success.
    package mutating func reset() { self = Backoff(policy) }
}
