import DeviceModel
import Foundation

/// Random numbers that follow from a seed: the same on every machine.
public struct TestRandom: RandomNumberGenerator, Sendable {
    private var state: UInt64

    /// Begins a sequence.
    public init(seed: UInt64) { state = seed }

    /// The next number.
    public mutating func next() -> UInt64 { SeededGenerator.next(&state) }

    /// True in so many of a hundred cases.
    public mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &self) < percent }
}

/// A body that failed for a seed.
public struct SeedFailure: Error, CustomStringConvertible {
    /// What the body was given.
    public let seed: UInt64
    /// What the body threw.
    public let error: any Error

    /// The seed, how to run it alone, and the error.
    public var description: String { "seed \(seed) fails (\(Seeds.variable)=\(seed) runs it alone): \(error)" }
}

/// Runs a test with many seeds.
public enum Seeds {
    /// The variable of the environment that names the only seed to run.
    static let variable = "WEIR_TEST_SEED"

    /// The variable's value is no seed.
    private struct NoSeed: Error, CustomStringConvertible {
        let text: String

        var description: String { "\(variable) is a number from 0, not \(text)" }
    }

    /// The seed that the environment names.
    private static var named: UInt64? {
        get throws {
            guard let text = ProcessInfo.processInfo.environment[variable] else { return nil }
            guard let seed = UInt64(text) else { throw NoSeed(text: text) }
            return seed
        }
    }

    /// Runs a body for each seed, one after the other, and stops at the first that fails.
    ///
    /// With `WEIR_TEST_SEED=7` in the environment only the seed 7 is run.
    ///
    /// - Parameters:
    ///   - seeds: what the body gets; everything random in it follows from that.
    ///   - body: throws where something does not hold.
    /// - Throws: ``SeedFailure``, which prints the seed; `CancellationError`.
    public static func run(
        _ seeds: some Sequence<UInt64>, isolation: isolated (any Actor)? = #isolation,
        _ body: (_ seed: UInt64) async throws -> Void
    ) async throws {
        for seed in try named.map({ [$0] }) ?? Array(seeds) {
            do {
                try await body(seed)
            } catch {
                try Task.checkCancellation()
                throw SeedFailure(seed: seed, error: error)
            }
        }
    }
}
