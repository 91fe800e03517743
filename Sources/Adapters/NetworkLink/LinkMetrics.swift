import Metrics

/// What both ends of the link count.
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

    /// Takes the numbers from a registry; by default from one that nobody looks at.
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
