import Synchronization

/// How often values of some size were seen, in buckets that are fixed, with the sum of all.
///
/// Recording is two relaxed atomic adds, from any thread.
package final class Histogram: Sendable {
    /// The bounds, and what the values count.
    package let scale: HistogramScale

    /// One for each bound and one for what is above all of them; `HistogramScale.maximumBounds` is their bound.
    private let counts: InlineArray<20, Atomic<Int>>
    private let sum = Atomic<Int>(0)

    /// Starts empty, known to no registry.
    package init(_ scale: HistogramScale) {
        self.scale = scale
        counts = InlineArray { _ in Atomic(0) }
    }

    /// Records a value in the scale's own unit: nanoseconds, bytes or things.
    package func record(_ value: Int) {
        var bucket = 0
        // Most values fall into low buckets, and there are at most nineteen.
        while bucket < scale.bounds.count, scale.bounds[bucket] < value { bucket += 1 }
        counts[bucket].wrappingAdd(1, ordering: .relaxed)
        sum.wrappingAdd(value, ordering: .relaxed)
    }

    /// Records how long something took; for a histogram of seconds.
    package func record(_ duration: Duration) {
        let (seconds, attoseconds) = duration.components
        record(Int(seconds) * 1_000_000_000 + Int(attoseconds / 1_000_000_000))
    }

    /// What was recorded so far: how many values are at or below each bound and above all of them, and the sum.
    ///
    /// The sum may be ahead or behind by what is being recorded just now.
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

/// The buckets of a histogram: bounds that rise, in the unit in which values are recorded.
package struct HistogramScale: Sendable, Hashable {
    /// The most bounds that a histogram has room for.
    static let maximumBounds = 19

    /// The bounds; a value falls into the first bucket whose bound it does not exceed.
    package let bounds: [Int]
    /// How many recorded units make up one unit of what is shown.
    package let unitsShown: Int

    private init(_ bounds: [Int], unitsShown: Int = 1) {
        precondition((1...Self.maximumBounds).contains(bounds.count), "a histogram has 1 to 19 bounds")
        self.bounds = bounds
        self.unitsShown = unitsShown
    }

    /// Times, recorded in nanoseconds and shown in seconds: 100 µs to a minute, for work that should take milliseconds.
    package static let seconds = HistogramScale(
        [
            100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000, 10_000_000, 25_000_000, 50_000_000, 100_000_000,
            250_000_000, 500_000_000, 1_000_000_000, 2_500_000_000, 5_000_000_000, 10_000_000_000, 30_000_000_000,
            60_000_000_000,
        ], unitsShown: 1_000_000_000)

    /// How many things were done together: 1 to 10,000.
    package static let counts = HistogramScale([1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000])

    /// Sizes in bytes: 256 bytes to 64 MiB.
    package static let bytes = HistogramScale((4...13).map { 1 << (2 * $0) })
}
