/// The one source of chance of a run: the same numbers for the same seed, on every machine (SplitMix64).
final class SeededGenerator: @unchecked Sendable {
    // Unchecked: used on the run's thread alone.
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    /// Any 64 bits.
    func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// A number of a range.
    func number(_ range: ClosedRange<Int>) -> Int {
        range.lowerBound + Int(next() % UInt64(range.upperBound - range.lowerBound + 1))
    }

    /// True once in so many times, on average.
    func once(in count: Int) -> Bool { next() % UInt64(count) == 0 }

    /// One of some.
    func pick<Element>(_ elements: [Element]) -> Element { elements[number(0...elements.count - 1)] }

    /// A short time, mostly far below the longest.
    func delay(upTo longest: Duration) -> Duration {
        let share = number(0...999)
        return longest * (share * share) / 1_000_000
    }
}
