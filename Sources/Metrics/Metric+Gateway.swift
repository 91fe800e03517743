/// The HTTP server and the gateway behind it.
extension Metric {
    /// Answers.
    public static let httpRequests = Metric(
        "http_requests_total", .counter, [.route, .status], hidesZeros: true,
        "Requests answered by the gateway, by path and status.")
    /// Time to the answer.
    public static let httpDuration = Metric(
        "http_request_duration_seconds", .histogram(.seconds), [.route], hidesZeros: true,
        "Time from the whole request to its answer, waiting for outcomes and long polls included.")
    /// Requests under way.
    public static let httpUnderWay = Metric(
        "http_requests_under_way", .gauge, "Requests that are arriving or being answered, event streams included.")
    /// What the server refused by itself.
    public static let httpRefusals = Metric(
        "http_refusals_total", .counter, [.reason], "Requests that the server refused before the gateway saw them.")
    /// Connections open.
    public static let httpConnections = Metric("http_connections", .gauge, "Connections that are open.")
    /// Connections taken.
    public static let httpConnectionsAccepted = Metric(
        "http_connections_accepted_total", .counter, "Connections that were taken.")
    /// Connections turned away.
    public static let httpConnectionsRefused = Metric(
        "http_connections_refused_total", .counter, [.reason],
        "Connections closed at once, because there are too many in all (total) or of one address (address).")
    /// Connections that were too slow.
    public static let httpConnectionsTimedOut = Metric(
        "http_connections_timed_out_total", .counter, "Connections closed because a request did not come in time.")
    /// Bodies held.
    public static let httpBodyBytes = Metric(
        "http_body_bytes", .gauge, "Bytes of request bodies that are held in memory.")

    static let http = [
        httpRequests, httpDuration, httpUnderWay, httpRefusals, httpConnections, httpConnectionsAccepted,
        httpConnectionsRefused, httpConnectionsTimedOut, httpBodyBytes,
    ]

    /// Problems answered.
    public static let gatewayProblems = Metric(
        "gateway_problems_total", .counter, [.reason], "Requests answered with a problem, by its code.")
    /// Requests that wait.
    public static let gatewayWaiting = Metric(
        "gateway_waiting_requests", .gauge, "Requests that wait for the log, an outcome, a stream or a move.")
    /// Event streams.
    public static let gatewayWatchers = Metric("gateway_watchers", .gauge, "Event streams that are open.")
    /// Uploads under way.
    public static let gatewayUnacknowledged = Metric(
        "gateway_unacknowledged_bytes", .gauge, "Bytes of uploads that the log does not have durably yet.")
    /// Uploads taken.
    public static let gatewayUploads = Metric(
        "gateway_uploads_total", .counter, "Batches that the log has taken durably.")
    /// Changes taken.
    public static let gatewayChanges = Metric("gateway_changes_total", .counter, "Changes in those batches.")
    /// Sizes of uploads.
    public static let gatewayUploadSize = Metric(
        "gateway_upload_size_bytes", .histogram(.bytes), "Size of the changes of a batch that was taken.")
    /// Time until an upload is durable.
    public static let gatewayAppendDuration = Metric(
        "gateway_append_duration_seconds", .histogram(.seconds), "Time until the log has a batch durably.")
    /// Uploads that failed.
    public static let gatewayAppendFailures = Metric(
        "gateway_append_failures_total", .counter, "Batches that the log did not take.")

    static let gateway = [
        gatewayProblems, gatewayWaiting, gatewayWatchers, gatewayUnacknowledged, gatewayUploads, gatewayChanges,
        gatewayUploadSize, gatewayAppendDuration, gatewayAppendFailures,
    ]
}
