/// Why the server itself answered a request, without its handler.
package enum HTTPRefusalReason: Int, Sendable, CaseIterable {
    /// 400: no request the server understands, a wrong body encoding included.
    case malformed
    /// 408: it did not come as a whole within `requestTimeout`.
    case timedOut
    /// 413: the body is larger than the limit, before or after decompression.
    case bodyTooLarge
    /// 414: the target is longer than `maxURLBytes`.
    case urlTooLong
    /// 415: a Content-Encoding other than gzip.
    case unsupportedEncoding
    /// 431: the headers are larger than `maxHeaderBytes`.
    case headersTooLarge
    /// 503: the bodies under way use up `maxBytesInFlight`, or the answers `maxAnswerBytesInFlight`.
    case overloaded
    /// 500: the handler's response cannot be sent (a status or header that HTTP does not have).
    case invalidResponse

    /// The status of the answer.
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

/// An answer that the server makes itself; `HTTPServerConfiguration.formatRefusal` gives it a body.
package struct HTTPRefusal: Sendable {
    /// Why, and with which status.
    package let reason: HTTPRefusalReason
    /// What exactly, for a human; it repeats nothing that the client sent.
    package let detail: String

    /// The headers that belong to it whatever the body is: Retry-After, Accept-Encoding.
    var fields: [HTTPField] {
        switch reason {
        case .overloaded: [HTTPField("Retry-After", "1")]
        case .unsupportedEncoding: [HTTPField("Accept-Encoding", "gzip")]
        default: []
        }
    }

    /// The answer to a request that takes too long to come.
    static let tooLate = HTTPRefusal(
        reason: .timedOut, detail: "the request did not arrive as a whole within the time allowed")

    /// A body of plain text.
    package static func plainText(_ refusal: HTTPRefusal) -> HTTPResponse {
        HTTPResponse(
            status: refusal.reason.status, headers: [HTTPField("Content-Type", "text/plain; charset=utf-8")],
            body: Array((refusal.detail + "\n").utf8))
    }
}
