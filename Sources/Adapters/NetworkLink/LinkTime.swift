/// The time that answers are measured in: a clock, counted from the moment at which an end was made.
struct LinkTime: Sendable {
    /// The time now.
    let now: @Sendable () -> Duration
    /// Waits for a while; throws when the task is cancelled before.
    let sleep: @Sendable (Duration) async throws -> Void

    init(_ clock: some Clock<Duration>) {
        let start = clock.now
        now = { start.duration(to: clock.now) }
        sleep = { try await clock.sleep(for: $0) }
    }

    /// What is left until a deadline, not below zero.
    func remaining(until deadline: Duration) -> Duration { max(.zero, deadline - now()) }

    /// Calls a body at each beat until the task is cancelled.
    func beat(every interval: Duration, _ body: @escaping @Sendable () -> Void) -> Task<Void, Never> {
        Task {
            while true {
                // Cancelled when the end stops.
                do { try await sleep(interval) } catch { return }
                body()
            }
        }
    }
}
