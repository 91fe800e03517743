/// The link between gateways and fan-outs that are processes of their own.
extension Metric {
    package static let linkConnections = Metric(
        "link_connections", .gauge, "Connected fan-outs that this gateway can send requests to.")
    package static let linkRequests = Metric(
        "link_requests_total", .counter, [.outcome],
        "Requests to fan-outs: answered, failed (the fan-out returned an error), or lost with their connection.")
    package static let linkRetries = Metric(
        "link_retries_total", .counter,
        "Requests that were sent to another fan-out after one failed or lacked the outcome.")
    package static let linkRoundTrip = Metric(
        "link_round_trip_seconds", .histogram(.seconds),
        "Time from a request to its response, including waits of the fan-out for outcomes and streams.")
    package static let linkGateways = Metric("link_gateways", .gauge, "Connected gateways of this fan-out.")
    package static let linkUnderWay = Metric(
        "link_questions_under_way", .gauge, "Requests of gateways in progress, including those that wait.")
    package static let linkServed = Metric(
        "link_questions_total", .counter, "Requests of gateways that were answered.")
    package static let linkDropped = Metric(
        "link_gateways_dropped_total", .counter,
        "Gateways disconnected because they were silent, did not read, or violated the protocol.")
    package static let linkRefused = Metric(
        "link_connections_refused_total", .counter,
        "Connections refused in the handshake: wrong key, no key, or not a gateway.")

    static let link = [
        linkConnections, linkRequests, linkRetries, linkRoundTrip, linkGateways, linkUnderWay, linkServed, linkDropped,
        linkRefused,
    ]
}
