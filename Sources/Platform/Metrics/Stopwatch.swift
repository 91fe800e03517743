import Glibc

/// Measures how long something takes, by the system's monotonic clock.
package struct Stopwatch: Sendable {
    private let start: Int

    /// Starts.
    package init() { start = Self.now() }

    /// The nanoseconds since the start.
    package var nanoseconds: Int { Self.now() - start }

    private static func now() -> Int {
        var time = timespec()
        // Cannot fail with this clock and a valid address.
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int(time.tv_sec) * 1_000_000_000 + Int(time.tv_nsec)
    }
}
