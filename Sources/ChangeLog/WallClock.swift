#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// The machine's clock, which an adapter that has no broker gives its records' times from.
public enum WallClock {
    /// Microseconds since 1970.
    public static func microseconds() -> Int64 {
        var time = timespec()
        // Cannot fail with this clock and a valid address.
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
    }
}
