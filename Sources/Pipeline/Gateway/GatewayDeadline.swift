/// The time that waits are measured in: a clock, counted from the moment at which the gateway was made.
package struct GatewayDeadline: Sendable {
    /// The time now.
    let now: @Sendable () -> Duration
    /// Waits until a time; throws when the task is cancelled before.
    let sleep: @Sendable (_ until: Duration) async throws -> Void

    package init<C: Clock>(_ clock: C) where C.Duration == Duration {
        let start = clock.now
        now = { start.duration(to: clock.now) }
        sleep = { try await clock.sleep(until: start.advanced(by: $0), tolerance: nil) }
    }

    /// What is left until a deadline, not below zero.
    func remaining(until deadline: Duration) -> Duration { max(.zero, deadline - now()) }
}
