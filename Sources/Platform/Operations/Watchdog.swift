import Synchronization

/// Detects that a thread is stuck.
///
/// Each check requests a heartbeat, unless one is pending, and never waits. A heartbeat that is pending for too long
/// means that the thread is stuck; so it takes two checks to detect it, the second after the limit.
package final class Watchdog: Sendable {
    /// What the thread is for.
    package let name: String

    private let limit: Duration
    private let now: @Sendable () -> Duration
    private let beat: @Sendable () async -> Void
    /// When the pending heartbeat was requested.
    private let requestedAt = Mutex<Duration?>(nil)

    /// - Parameters:
    ///   - limit: how long a heartbeat may take; far above the latency of the slowest disk.
    ///   - beat: returns when the thread has run it.
    package init(
        _ name: String, limit: Duration = .seconds(30), clock: some Clock<Duration> = ContinuousClock(),
        beat: @escaping @Sendable () async -> Void
    ) {
        self.name = name
        self.limit = limit
        now = Self.time(of: clock)
        self.beat = beat
    }

    /// How long a heartbeat has been pending, if that is beyond the limit.
    func check() -> Duration? {
        let now = now()
        let (waited, mustRequest): (Duration, Bool) = requestedAt.withLock { requestedAt in
            if let requestedAt { return (now - requestedAt, false) }
            requestedAt = now
            return (.zero, true)
        }
        // At most one task at a time.
        if mustRequest {
            Task {
                await beat()
                requestedAt.withLock { $0 = nil }
            }
        }
        return waited > limit ? waited : nil
    }

    private static func time<C: Clock<Duration>>(of clock: C) -> @Sendable () -> Duration {
        let start = clock.now
        return { start.duration(to: clock.now) }
    }
}

/// Watchdogs of the threads that the process depends on, and of the pool that runs its tasks.
package final class Liveness: Sendable {
    // Bounded by the components of the process.
    private let watchdogs: Mutex<[Watchdog]>

    package init(tasks: Watchdog = Watchdog("tasks") {}) { watchdogs = Mutex([tasks]) }

    package func add(_ watchdog: Watchdog) { watchdogs.withLock { $0.append(watchdog) } }

    /// The stuck threads, and since when.
    func stalls() -> [(name: String, time: Duration)] {
        watchdogs.withLock(\.self).compactMap { watchdog in watchdog.check().map { (watchdog.name, $0) } }
    }
}
