import Glibc
import Synchronization

/// A histogram with fixed buckets; recording is two relaxed atomic operations.
package final class Histogram: Sendable {
    package let scale: HistogramScale

    /// One for each bound, and one for larger values; `HistogramScale.maximumBounds` limits them.
    private let counts: InlineArray<20, Atomic<Int>>
    private let sum = Atomic<Int>(0)

    package init(_ scale: HistogramScale) {
        self.scale = scale
        counts = InlineArray { _ in Atomic(0) }
    }

    /// - Parameter value: in the scale's recorded unit: nanoseconds, bytes or a count.
    package func record(_ value: Int) {
        var bucket = 0
        // Linear search: most values are in low buckets, and there are at most 19 bounds.
        while bucket < scale.bounds.count, scale.bounds[bucket] < value { bucket += 1 }
        counts[bucket].wrappingAdd(1, ordering: .relaxed)
        sum.wrappingAdd(value, ordering: .relaxed)
    }

    /// For a histogram of seconds.
    package func record(_ duration: Duration) {
        let (seconds, attoseconds) = duration.components
        record(Int(seconds) * 1_000_000_000 + Int(attoseconds / 1_000_000_000))
    }

    /// The cumulative counts for each bound and for all values, and the sum, which concurrent recording can make
    /// inconsistent with the counts.
    package var snapshot: (cumulative: [Int], sum: Int) {
        var cumulative: [Int] = []
        var total = 0
        for bucket in 0...scale.bounds.count {
            total += counts[bucket].load(ordering: .relaxed)
            cumulative.append(total)
        }
        return (cumulative, sum.load(ordering: .relaxed))
    }
}

/// The bucket bounds of a histogram, ascending, in the recorded unit.
package struct HistogramScale: Sendable, Hashable {
    static let maximumBounds = 19

    /// Upper bounds, inclusive.
    package let bounds: [Int]
    /// Recorded units per exported unit.
    package let unitsShown: Int

    private init(_ bounds: [Int], unitsShown: Int = 1) {
        precondition((1...Self.maximumBounds).contains(bounds.count), "a histogram has 1 to 19 bounds")
        self.bounds = bounds
        self.unitsShown = unitsShown
    }

    /// Durations from 100 µs to a minute, recorded in nanoseconds and exported in seconds.
    package static let seconds = HistogramScale(
        [
            100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000, 10_000_000, 25_000_000, 50_000_000, 100_000_000,
            250_000_000, 500_000_000, 1_000_000_000, 2_500_000_000, 5_000_000_000, 10_000_000_000, 30_000_000_000,
            60_000_000_000,
        ], unitsShown: 1_000_000_000)

    /// Counts from 1 to 10,000.
    package static let counts = HistogramScale([1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000])

    /// Sizes from 256 bytes to 64 MiB.
    package static let bytes = HistogramScale((4...13).map { 1 << (2 * $0) })
}

/// Measures durations with the monotonic clock.
package struct Stopwatch: Sendable {
    private let start: Int

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
