import Foundation

/// How long tests that play at random go on: a few seconds, or, in `deploy/test --long`, much longer.
package enum TestLength {
    /// Whether this is a long run.
    package static let isLong = ProcessInfo.processInfo.environment["WEIR_TEST_LONG"] != nil

    /// How often something is tried.
    ///
    /// - Parameters:
    ///   - usual: in the usual run, whose tests all together take minutes.
    ///   - long: in the long run, which is built with optimisation.
    package static func count<Count: BinaryInteger>(_ usual: Count, long: Count) -> Count { isLong ? long : usual }
}
