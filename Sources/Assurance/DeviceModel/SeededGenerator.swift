/// The only source of randomness of a run (SplitMix64): the same numbers for the same seed on every machine.
package final class SeededGenerator: @unchecked Sendable {
    // Unchecked: used on the run's thread alone.
    private var state: UInt64

    package init(seed: UInt64) { state = seed }

    package func next() -> UInt64 { Self.next(&state) }

    /// The number after a state, which moves on.
    package static func next(_ state: inout UInt64) -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// Another generator, which follows from this one's state and leaves it as it is.
    package func branch() -> SeededGenerator { SeededGenerator(seed: state ^ 0x5851_F42D_4C95_7F2D) }

    package func number(_ range: ClosedRange<Int>) -> Int {
        range.lowerBound + Int(next() % UInt64(range.upperBound - range.lowerBound + 1))
    }

    /// True once in `count` calls on average.
    package func once(in count: Int) -> Bool { next() % UInt64(count) == 0 }

    package func pick<Element>(_ elements: [Element]) -> Element { elements[number(0...elements.count - 1)] }

    /// A duration, mostly far below the longest.
    package func delay(upTo longest: Duration) -> Duration {
        let share = number(0...999)
        return longest * (share * share) / 1_000_000
    }
}
