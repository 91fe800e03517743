import Foundation

/// How long tests with random input run: `WEIR_TEST_LENGTH`, which `deploy/test` sets.
package enum TestLength: String, Sendable {
    /// `deploy/test`, and where nothing is set: each behaviour once.
    case short
    /// `deploy/test --full`: as many seeds and rounds as a debug build plays in minutes.
    case full
    /// `deploy/test --long`, built with optimisation: an hour.
    case long

    package static let current: TestLength = {
        guard let text = ProcessInfo.processInfo.environment["WEIR_TEST_LENGTH"], !text.isEmpty else { return .short }
        guard let length = TestLength(rawValue: text) else {
            preconditionFailure("WEIR_TEST_LENGTH is \(text), which is none of short, full and long")
        }
        return length
    }()

    /// How many inputs, seeds or rounds a test plays.
    ///
    /// - Parameter short: fewer than in a full run, for a test that takes seconds there; `nil` for as many.
    package static func count<Count: BinaryInteger>(_ full: Count, short: Count? = nil, long: Count) -> Count {
        switch current {
        case .short: short ?? full
        case .full: full
        case .long: long
        }
    }

    /// The seeds of a parameterized test: 1 up to ``count(_:short:long:)``.
    package static func seeds(_ full: UInt64, short: UInt64? = nil, long: UInt64) -> ClosedRange<UInt64> {
        1...count(full, short: short, long: long)
    }
}
