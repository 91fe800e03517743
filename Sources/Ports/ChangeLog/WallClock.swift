import Glibc

/// The machine's clock, which an adapter that has no broker gives its records' times from.
package enum WallClock {
    /// Microseconds since 1970.
    package static func microseconds() -> Int64 {
        var time = timespec()
        // Cannot fail with this clock and a valid address.
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
    }
}
