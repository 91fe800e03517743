/// The HTTP server and the gateway behind it.
extension Metric {
    package static let httpRequests = Metric(
        "http_requests_total", .counter, [.route, .status], hidesZeros: true,
        "Requests answered by the gateway, by path and status.")
    package static let httpDuration = Metric(
        "http_request_duration_seconds", .histogram(.seconds), [.route], hidesZeros: true,
        "Time from the complete request to its response, including waits for outcomes and long polls.")
    package static let httpUnderWay = Metric(
        "http_requests_under_way", .gauge, "Requests that are arriving or being answered, including event streams.")
    package static let httpRefusals = Metric(
        "http_refusals_total", .counter, [.reason],
        "Requests that the HTTP server refused before they reached the gateway.")
    package static let httpConnections = Metric("http_connections", .gauge, "Open connections.")
    package static let httpConnectionsAccepted = Metric(
        "http_connections_accepted_total", .counter, "Connections accepted.")
    package static let httpConnectionsRefused = Metric(
        "http_connections_refused_total", .counter, [.reason],
        "Connections closed at once because a limit was reached: of all (total) or of one address (address).")
    package static let httpConnectionsTimedOut = Metric(
        "http_connections_timed_out_total", .counter, "Connections closed because a request did not arrive in time.")
    package static let httpBodyBytes = Metric(
        "http_body_bytes", .gauge, "Bytes of request bodies in memory.")
    package static let httpResponseBytes = Metric(
        "http_response_bytes", .gauge,
        "Bytes of pages being read, and of responses above 64 KiB that clients have not read yet.")
    package static let httpCertificateExpiration = Metric(
        "http_certificate_expiration_seconds", .gauge,
        "When the certificate of new connections expires, in seconds since 1970; 0 without TLS.")
    package static let httpCertificateLoads = Metric(
        "http_certificate_loads_total", .counter, "Changed certificates that new connections get.")
    package static let httpCertificateFailures = Metric(
        "http_certificate_failures_total", .counter,
        "Changed certificates that could not be used, so that new connections get the previous one.")

    static let http = [
        httpRequests, httpDuration, httpUnderWay, httpRefusals, httpConnections, httpConnectionsAccepted,
        httpConnectionsRefused, httpConnectionsTimedOut, httpBodyBytes, httpResponseBytes, httpCertificateExpiration,
        httpCertificateLoads,
        httpCertificateFailures,
    ]

    package static let gatewayProblems = Metric(
        "gateway_problems_total", .counter, [.reason],
        "Requests answered with a problem, by its code, and responses of faces that one breaks off.")
    package static let gatewayRateLimited = Metric(
        "gateway_rate_limited_total", .counter, [.limit],
        "Requests refused because a caller or device has reached a rate (caller-requests, device-bytes, …).")
    package static let gatewayWaiting = Metric(
        "gateway_waiting_requests", .gauge,
        "Requests that wait for the log, an outcome, a stream, a move of a head or for rates, and refusals held back.")
    package static let gatewayWatchers = Metric("gateway_watchers", .gauge, "Open event streams.")
    package static let gatewayUnacknowledged = Metric(
        "gateway_unacknowledged_bytes", .gauge, "Bytes of uploads whose append to the log is not durable yet.")
    package static let gatewayUploads = Metric(
        "gateway_uploads_total", .counter, "Batches appended durably to the log.")
    package static let gatewayChanges = Metric(
        "gateway_changes_total", .counter, "Changes in the batches appended durably to the log.")
    package static let gatewayDelayedUploads = Metric(
        "gateway_delayed_uploads_total", .counter,
        "Batches that waited until earlier ones of their caller could be pulled.")
    package static let gatewayUploadSize = Metric(
        "gateway_upload_size_bytes", .histogram(.bytes), "Size of the changes of an appended batch.")
    package static let gatewayAppendDuration = Metric(
        "gateway_append_duration_seconds", .histogram(.seconds), "Time until the append of a batch is durable.")
    package static let gatewayAppendFailures = Metric(
        "gateway_append_failures_total", .counter, "Batches whose append failed.")
    package static let gatewayDeviceFailures = Metric(
        "gateway_device_failures_total", .counter, "Failed writes of the registry of devices.")
    package static let gatewayFiles = Metric(
        "gateway_files_total", .counter, [.outcome],
        "Uploads of owners' files: stored, older than the owner's file, or failed.")
    package static let gatewayFileBytes = Metric(
        "gateway_file_bytes_total", .counter, "Bytes of owners' files that have arrived.")

    package static let gatewayTokenRefusals = Metric(
        "gateway_token_refusals_total", .counter, [.cause], "Requests whose bearer token was refused, by the cause.")
    package static let gatewayTokenChecks = Metric(
        "gateway_token_checks_total", .counter,
        "Tokens whose signature was checked, others than those checked recently.")
    package static let gatewayKeyReadings = Metric(
        "gateway_key_readings_total", .counter, [.outcome],
        "Attempts to read the keys of tokens from their source: succeeded or failed.")
    package static let gatewayKeyAge = Metric(
        "gateway_key_age_seconds", .gauge,
        "Time since the keys of tokens in use were read from their source; 0 without keys.")
    package static let gatewayKeys = Metric("gateway_keys", .gauge, "Keys with which tokens are checked.")

    static let gateway = [
        gatewayProblems, gatewayRateLimited, gatewayTokenRefusals, gatewayTokenChecks, gatewayKeyReadings,
        gatewayKeyAge, gatewayKeys, gatewayWaiting, gatewayWatchers, gatewayUnacknowledged, gatewayUploads,
        gatewayChanges, gatewayDelayedUploads, gatewayUploadSize, gatewayAppendDuration, gatewayAppendFailures,
        gatewayDeviceFailures, gatewayFiles, gatewayFileBytes,
    ]
}
