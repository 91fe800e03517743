/// The time that a runner goes by: any clock, whose instants become durations since it was taken over.
package struct RunClock: Sendable {
    /// The time since the beginning.
    let now: @Sendable () -> Duration
    /// Waits until a time since the beginning; throws `CancellationError` only.
    let sleep: @Sendable (_ until: Duration) async throws -> Void

    package init<C: Clock>(_ clock: C) where C.Duration == Duration {
        let start = clock.now
        now = { start.duration(to: clock.now) }
        sleep = { try await clock.sleep(until: start.advanced(by: $0), tolerance: nil) }
    }
}
