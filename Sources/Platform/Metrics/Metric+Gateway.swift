/// The HTTP server and the gateway behind it.
extension Metric {
    /// Answers.
    package static let httpRequests = Metric(
        "http_requests_total", .counter, [.route, .status], hidesZeros: true,
        "Requests answered by the gateway, by path and status.")
    /// Time to the answer.
    package static let httpDuration = Metric(
        "http_request_duration_seconds", .histogram(.seconds), [.route], hidesZeros: true,
        "Time from the whole request to its answer, waiting for outcomes and long polls included.")
    /// Requests under way.
    package static let httpUnderWay = Metric(
        "http_requests_under_way", .gauge, "Requests that are arriving or being answered, event streams included.")
    /// What the server refused by itself.
    package static let httpRefusals = Metric(
        "http_refusals_total", .counter, [.reason], "Requests that the server refused before the gateway saw them.")
    /// Connections open.
    package static let httpConnections = Metric("http_connections", .gauge, "Connections that are open.")
    /// Connections taken.
    package static let httpConnectionsAccepted = Metric(
        "http_connections_accepted_total", .counter, "Connections that were taken.")
    /// Connections turned away.
    package static let httpConnectionsRefused = Metric(
        "http_connections_refused_total", .counter, [.reason],
        "Connections closed at once, because there are too many in all (total) or of one address (address).")
    /// Connections that were too slow.
    package static let httpConnectionsTimedOut = Metric(
        "http_connections_timed_out_total", .counter, "Connections closed because a request did not come in time.")
    /// Bodies held.
    package static let httpBodyBytes = Metric(
        "http_body_bytes", .gauge, "Bytes of request bodies that are held in memory.")

    static let http = [
        httpRequests, httpDuration, httpUnderWay, httpRefusals, httpConnections, httpConnectionsAccepted,
        httpConnectionsRefused, httpConnectionsTimedOut, httpBodyBytes,
    ]

    /// Problems answered.
    package static let gatewayProblems = Metric(
        "gateway_problems_total", .counter, [.reason], "Requests answered with a problem, by its code.")
    /// Requests that wait.
    package static let gatewayWaiting = Metric(
        "gateway_waiting_requests", .gauge, "Requests that wait for the log, an outcome, a stream or a move.")
    /// Event streams.
    package static let gatewayWatchers = Metric("gateway_watchers", .gauge, "Event streams that are open.")
    /// Uploads under way.
    package static let gatewayUnacknowledged = Metric(
        "gateway_unacknowledged_bytes", .gauge, "Bytes of uploads that the log does not have durably yet.")
    /// Uploads taken.
    package static let gatewayUploads = Metric(
        "gateway_uploads_total", .counter, "Batches that the log has taken durably.")
    /// Changes taken.
    package static let gatewayChanges = Metric("gateway_changes_total", .counter, "Changes in those batches.")
    /// Sizes of uploads.
    package static let gatewayUploadSize = Metric(
        "gateway_upload_size_bytes", .histogram(.bytes), "Size of the changes of a batch that was taken.")
    /// Time until an upload is durable.
    package static let gatewayAppendDuration = Metric(
        "gateway_append_duration_seconds", .histogram(.seconds), "Time until the log has a batch durably.")
    /// Uploads that failed.
    package static let gatewayAppendFailures = Metric(
        "gateway_append_failures_total", .counter, "Batches that the log did not take.")

    static let gateway = [
        gatewayProblems, gatewayWaiting, gatewayWatchers, gatewayUnacknowledged, gatewayUploads, gatewayChanges,
        gatewayUploadSize, gatewayAppendDuration, gatewayAppendFailures,
    ]
}
