import Metrics

/// The metrics of both sides of the link.
package struct LinkMetrics: Sendable {
    let connections: Gauge
    let roundTrips: Histogram
    let answered: Counter
    let failed: Counter
    let lost: Counter
    let retries: Counter
    let gateways: Gauge
    let underWay: Gauge
    let served: Counter
    let dropped: Counter
    let refused: Counter

    /// - Parameter registry: by default one that is not exported.
    package init(_ registry: MetricRegistry = MetricRegistry()) {
        connections = registry.gauge(.linkConnections)
        roundTrips = registry.histogram(.linkRoundTrip)
        answered = registry.counter(.linkRequests, [.outcome: "answered"])
        failed = registry.counter(.linkRequests, [.outcome: "failed"])
        lost = registry.counter(.linkRequests, [.outcome: "lost"])
        retries = registry.counter(.linkRetries)
        gateways = registry.gauge(.linkGateways)
        underWay = registry.gauge(.linkUnderWay)
        served = registry.counter(.linkServed)
        dropped = registry.counter(.linkDropped)
        refused = registry.counter(.linkRefused)
    }
}
