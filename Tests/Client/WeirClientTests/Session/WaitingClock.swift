import WeirClient

/// A clock whose pauses between rows end once a closure has returned.
struct WaitingClock: Clock {
    typealias Instant = ContinuousClock.Instant
    let wait: @Sendable () async throws -> Void
    var now: Instant { ContinuousClock.now }
    var minimumResolution: Duration { .zero }

    func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        // The lease, which is kept while a response is waited for.
        if deadline - now > Lease.renewal / 2 { return try await ContinuousClock().sleep(until: deadline) }
        try await wait()
    }
}
