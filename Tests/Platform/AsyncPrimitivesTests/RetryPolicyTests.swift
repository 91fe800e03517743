import AsyncPrimitives
import TestClocks
import Testing

@Suite struct RetryPolicyTests {
    private struct Failure: Error, Equatable { var number: Int }

    private static let delays = Duration.seconds(1)...(.seconds(4))

    @Test func pausesDoubleUpToTheLongest() async throws {
        let clock = RecordingClock()
        var (calls, retried) = (0, [Int]())
        let value = try await RetryPolicy(delays: Self.delays, clock: clock).run { () throws(Failure) in
            calls += 1
            if calls < 6 { throw Failure(number: calls) }
            return calls
        } retryIf: { _ in
            true
        } willRetry: { failure, attempt in
            #expect(failure.number == attempt)
            retried.append(attempt)
        }
        #expect(value == 6)
        #expect(retried == [1, 2, 3, 4, 5])
        #expect(clock.sleeps == [1, 2, 4, 4, 4].map(Duration.seconds))
    }

    @Test func failureThatIsNotRetriableIsThrown() async {
        let clock = RecordingClock()
        await #expect(throws: Failure(number: 1)) {
            try await RetryPolicy(delays: Self.delays, clock: clock).run { () throws(Failure) in
                throw Failure(number: 1)
            } retryIf: {
                $0.number != 1
            }
        }
        #expect(clock.sleeps.isEmpty)
    }

    @Test func limitEndsTheAttempts() async {
        let clock = RecordingClock()
        let policy = RetryPolicy(delays: Self.delays, limit: .seconds(5), clock: clock)
        await #expect(throws: Failure(number: 0)) {
            try await policy.run { () throws(Failure) in
                throw Failure(number: 0)
            } retryIf: { _ in
                true
            }
        }
        #expect(clock.sleeps == [1, 2, 4].map(Duration.seconds))
    }

    @Test func cancellationInAPauseThrowsTheFailure() async {
        let clock = ManualClock()
        let task = Task {
            try await RetryPolicy(delays: Self.delays, clock: clock).run { () throws(Failure) in
                throw Failure(number: 0)
            } retryIf: { _ in
                true
            }
        }
        await clock.sleepers(1)
        task.cancel()
        await #expect(throws: Failure(number: 0)) { try await task.value }
    }

    @Test func backoffStartsAgainAfterAReset() async throws {
        let clock = RecordingClock()
        var backoff = Backoff(RetryPolicy(delays: Self.delays, clock: clock))
        var announced: [Duration] = []
        for _ in 0..<3 { try await backoff.pause { announced.append($0) } }
        backoff.reset()
        #expect(backoff.attempts == 0)
        try await backoff.pause { announced.append($0) }
        #expect(announced == [1, 2, 4, 1].map(Duration.seconds))
        #expect(clock.sleeps == announced)
    }
}
