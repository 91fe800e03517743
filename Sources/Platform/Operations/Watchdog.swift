import Synchronization

/// A sign of life of a thread that others depend on.
///
/// Feeling it asks for a beat, unless one is asked for already, and never waits: that the last one has not come for too long
/// says that the thread is stuck. Two looks tell, the second after the limit.
package final class Watchdog: Sendable {
    /// What it is the pulse of.
    package let name: String

    private let limit: Duration
    private let now: @Sendable () -> Duration
    private let beat: @Sendable () async -> Void
    /// When the beat was asked for that has not come yet.
    private let askedAt = Mutex<Duration?>(nil)

    /// Makes a pulse.
    ///
    /// - Parameters:
    ///   - name: what it is the pulse of.
    ///   - limit: how long a beat may take; far above what the slowest disk makes a thread wait.
    ///   - clock: measures it.
    ///   - beat: returns when the thread has done something.
    package init(
        _ name: String, limit: Duration = .seconds(30), clock: some Clock<Duration> = ContinuousClock(),
        beat: @escaping @Sendable () async -> Void
    ) {
        self.name = name
        self.limit = limit
        now = Self.time(of: clock)
        self.beat = beat
    }

    /// For how long a beat has been missing, where that is beyond the limit; `nil` where all is well.
    func feel() -> Duration? {
        let now = now()
        let (waited, mustAsk): (Duration, Bool) = askedAt.withLock { askedAt in
            if let askedAt { return (now - askedAt, false) }
            askedAt = now
            return (.zero, true)
        }
        // At most one task at a time.
        if mustAsk {
            Task {
                await beat()
                askedAt.withLock { $0 = nil }
            }
        }
        return waited > limit ? waited : nil
    }

    private static func time<C: Clock<Duration>>(of clock: C) -> @Sendable () -> Duration {
        let start = clock.now
        return { start.duration(to: clock.now) }
    }
}

/// Whether the process lives: the pulses of the threads that it depends on, and of the pool that runs its tasks.
package final class Liveness: Sendable {
    // Grows with the parts of the process alone.
    private let pulses: Mutex<[Watchdog]>

    /// With the pulse of the pool that runs tasks.
    package init(tasks: Watchdog = Watchdog("tasks") {}) { pulses = Mutex([tasks]) }

    /// Adds a pulse.
    package func add(_ pulse: Watchdog) { pulses.withLock { $0.append(pulse) } }

    /// The names of those that stand still, each with how long.
    func stalls() -> [(name: String, time: Duration)] {
        pulses.withLock(\.self).compactMap { pulse in pulse.feel().map { (pulse.name, $0) } }
    }
}
