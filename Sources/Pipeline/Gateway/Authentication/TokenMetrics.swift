import Metrics
import WebTokens

package struct TokenMetrics: Sendable {
    let checks: Counter
    let refusals: [TokenRefusal.Cause: Counter]
    private let readings: [Bool: Counter]

    /// - Parameter registry: by default one that nothing exports.
    package init(_ registry: MetricRegistry = MetricRegistry()) {
        checks = registry.counter(.gatewayTokenChecks)
        refusals = Dictionary(
            uniqueKeysWithValues: TokenRefusal.Cause.allCases.map {
                ($0, registry.counter(.gatewayTokenRefusals, [.cause: $0.rawValue]))
            })
        readings = [
            true: registry.counter(.gatewayKeyReadings, [.outcome: "succeeded"]),
            false: registry.counter(.gatewayKeyReadings, [.outcome: "failed"]),
        ]
    }

    /// Counts a reading of the keys.
    package func recordReading(succeeded: Bool) { readings[succeeded]?.add() }
}
