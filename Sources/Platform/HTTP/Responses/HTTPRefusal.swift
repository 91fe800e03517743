/// Why the server refused a request without calling its handler.
package enum HTTPRefusalReason: Int, Sendable, CaseIterable {
    /// 400: not a valid request, or a malformed body encoding.
    case malformed
    /// 408: the request did not arrive completely within `requestTimeout`.
    case timedOut
    /// 413: the body is larger than the limit, before or after decompression.
    case bodyTooLarge
    /// 414: the target is longer than `maxURLBytes`.
    case urlTooLong
    /// 415: a Content-Encoding other than gzip.
    case unsupportedEncoding
    /// 431: the headers are larger than `maxHeaderBytes`.
    case headersTooLarge
    /// 503: `maxBytesInFlight` or `maxAnswerBytesInFlight` is reached.
    case overloaded
    /// 500: the handler's response has an invalid status or header.
    case invalidResponse

    package var status: Int {
        switch self {
        case .malformed: 400
        case .timedOut: 408
        case .bodyTooLarge: 413
        case .urlTooLong: 414
        case .unsupportedEncoding: 415
        case .headersTooLarge: 431
        case .overloaded: 503
        case .invalidResponse: 500
        }
    }
}

/// A response that the server makes itself; `HTTPServerConfiguration.formatRefusal` formats its body.
package struct HTTPRefusal: Sendable {
    package let reason: HTTPRefusalReason
    /// For a developer; contains no data of the request.
    package let detail: String
    /// What a Content-Encoding may be.
    var encoding = "gzip"

    var fields: [HTTPField] {
        switch reason {
        case .overloaded: [HTTPField("Retry-After", "1")]
        case .unsupportedEncoding: [HTTPField("Accept-Encoding", encoding)]
        default: []
        }
    }

    static let timedOut = HTTPRefusal(
        reason: .timedOut, detail: "the request did not arrive completely in time")

    package static func plainText(_ refusal: HTTPRefusal) -> HTTPResponse {
        HTTPResponse(
            status: refusal.reason.status, headers: [HTTPField("Content-Type", "text/plain; charset=utf-8")],
            body: Array((refusal.detail + "\n").utf8))
    }
}
