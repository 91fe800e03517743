import Fuzzing
import Seeded

/// The seeds of a test that plays at random.
enum Seeds {
    /// The first seeds: as many as the usual run has time for, or, with `deploy/test --long`, many more.
    static func count(_ usual: UInt64, long: UInt64) -> [UInt64] {
        Array(1...TestLength.count(usual, long: long))
    }
}
