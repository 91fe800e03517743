/// A clock that counts from its creation.
struct LinkClock: Sendable {
    let now: @Sendable () -> Duration
    /// Throws when the task is cancelled.
    private let sleep: @Sendable (Duration) async throws -> Void

    init(_ clock: some Clock<Duration>) {
        let start = clock.now
        now = { start.duration(to: clock.now) }
        sleep = { try await clock.sleep(for: $0) }
    }

    /// The time left until a deadline, not below zero.
    func remaining(until deadline: Duration) -> Duration { max(.zero, deadline - now()) }

    /// Calls a body after each interval until the task is cancelled.
    func heartbeat(every interval: Duration, _ body: @escaping @Sendable () -> Void) -> Task<Void, Never> {
        Task { [sleep] in
            while true {
                // Throws when the link stops.
                do { try await sleep(interval) } catch { return }
                body()
            }
        }
    }
}
