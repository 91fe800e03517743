/// The link between gateways and fan-outs that are processes of their own.
extension Metric {
    /// Fan-outs connected.
    package static let linkConnections = Metric(
        "link_connections", .gauge, "Fan-outs that this gateway is connected with and may ask.")
    /// Questions of a gateway.
    package static let linkRequests = Metric(
        "link_requests_total", .counter, [.outcome],
        "Questions put to fan-outs: answered, failed (the fan-out said why), or lost with their connection.")
    /// Questions asked again.
    package static let linkRetries = Metric(
        "link_retries_total", .counter, "Questions that were put to another fan-out after one could not answer.")
    /// Time to the answer.
    package static let linkRoundTrip = Metric(
        "link_round_trip_seconds", .histogram(.seconds),
        "Time from a question to its answer, the time included for which the fan-out waits for outcomes and streams.")
    /// Gateways connected.
    package static let linkGateways = Metric("link_gateways", .gauge, "Gateways that this fan-out is connected with.")
    /// Questions under way.
    package static let linkUnderWay = Metric(
        "link_questions_under_way", .gauge, "Questions of gateways that are being answered, those that wait included.")
    /// Questions answered.
    package static let linkServed = Metric(
        "link_questions_total", .counter, "Questions of gateways that were answered.")
    /// Gateways dropped.
    package static let linkDropped = Metric(
        "link_gateways_dropped_total", .counter, "Gateways that fell silent, did not read or broke the protocol.")
    /// Connections refused.
    package static let linkRefused = Metric(
        "link_connections_refused_total", .counter,
        "Connections turned away in their greeting: another key, none, or something else than a gateway.")

    static let link = [
        linkConnections, linkRequests, linkRetries, linkRoundTrip, linkGateways, linkUnderWay, linkServed, linkDropped,
        linkRefused,
    ]
}
