#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// Measures how long something takes, by the system's monotonic clock.
public struct Stopwatch: Sendable {
    private let start: Int

    /// Starts.
    public init() { start = Self.now() }

    /// The nanoseconds since the start.
    public var nanoseconds: Int { Self.now() - start }

    private static func now() -> Int {
        var time = timespec()
        // Cannot fail with this clock and a valid address.
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int(time.tv_sec) * 1_000_000_000 + Int(time.tv_nsec)
    }
}
