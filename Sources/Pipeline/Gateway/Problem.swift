import HTTP
import JSONText

/// The codes of answers that are no answers: stable, for programs (client contract: errors).
package enum ProblemCode: String, Sendable, Hashable, CaseIterable {
    /// The body is no JSON, or no UTF-8.
    case malformedJSON = "malformed_json"
    /// It is not known who is calling.
    case unauthenticated
    /// This caller may not do this at all.
    case forbidden
    /// No such resource; of a batch: no outcome is known.
    case notFound = "not_found"
    /// The resource has no such method.
    case methodNotAllowed = "method_not_allowed"
    /// The request did not arrive whole in time.
    case requestTimeout = "request_timeout"
    /// More bytes or changes than the limits allow.
    case batchTooLarge = "batch_too_large"
    /// The body is not application/json, or its encoding not gzip.
    case unsupportedMediaType = "unsupported_media_type"
    /// The envelope is wrong, or the request is no HTTP.
    case invalidRequest = "invalid_request"
    /// This caller sends more than it may.
    case rateLimited = "rate_limited"
    /// The gateway is full.
    case overloaded
    /// A part of the pipeline cannot work at the moment.
    case notReady = "not_ready"
    /// There is no room for the log.
    case storageFull = "storage_full"
    /// Durable, not yet ordered.
    case outcomePending = "outcome_pending"
    /// The server made an answer that it could not send: a fault of the server's.
    case internalError = "internal_error"

    /// The HTTP status.
    package var status: Int {
        switch self {
        case .malformedJSON: 400
        case .unauthenticated: 401
        case .forbidden: 403
        case .notFound: 404
        case .methodNotAllowed: 405
        case .requestTimeout: 408
        case .batchTooLarge: 413
        case .unsupportedMediaType: 415
        case .invalidRequest: 422
        case .rateLimited: 429
        case .overloaded, .notReady, .storageFull: 503
        case .outcomePending: 504
        case .internalError: 500
        }
    }

    /// What it means, in a few words.
    package var title: String {
        switch self {
        case .malformedJSON: "The body is no JSON"
        case .unauthenticated: "Who is calling?"
        case .forbidden: "Not allowed"
        case .notFound: "Not found"
        case .methodNotAllowed: "Method not allowed"
        case .requestTimeout: "The request took too long"
        case .batchTooLarge: "The batch is too large"
        case .unsupportedMediaType: "Unsupported media type"
        case .invalidRequest: "The request is invalid"
        case .rateLimited: "Too much at once"
        case .overloaded: "The server is full"
        case .notReady: "The server is not ready"
        case .storageFull: "The server has no room"
        case .outcomePending: "The outcome is pending"
        case .internalError: "A fault of the server"
        }
    }
}

/// An answer that is no answer: `application/problem+json` (RFC 9457).
package struct Problem: Error, Sendable {
    /// Where the codes are explained: the document that the gateway serves there, with an anchor for each.
    static let documentation = "/docs/errors.md"

    /// The code.
    package let code: ProblemCode
    /// The HTTP status: the code's own, but where HTTP itself has a more exact one.
    package let status: Int
    /// What exactly; repeats no data of the request but names and positions.
    package let detail: String
    /// The offset in the decompressed body, where that helps.
    package var position: Int?
    /// Seconds after which to try again.
    package var retryAfter: Int?
    /// Further headers.
    package var headers: [HTTPField] = []

    /// States a problem.
    package init(_ code: ProblemCode, _ detail: String, position: Int? = nil, retryAfter: Int? = nil) {
        self.init(code, status: code.status, detail, position: position, retryAfter: retryAfter)
    }

    private init(_ code: ProblemCode, status: Int, _ detail: String, position: Int? = nil, retryAfter: Int? = nil) {
        self.code = code
        self.status = status
        self.detail = detail
        self.position = position
        switch code {
        case .rateLimited, .overloaded, .notReady, .storageFull: self.retryAfter = retryAfter ?? 1
        default: self.retryAfter = retryAfter
        }
    }

    /// The answer.
    package var response: HTTPResponse {
        var writer = JSONWriter(capacity: 256)
        writer.object { writer in
            writer.name("type")
            writer.value("\(Self.documentation)#\(code.rawValue)")
            writer.name("title")
            writer.value(code.title)
            writer.name("status")
            writer.value(status)
            writer.name("code")
            writer.value(code.rawValue)
            writer.name("detail")
            writer.value(detail)
            if let position {
                writer.name("position")
                writer.value(position)
            }
        }
        var headers = headers
        headers.append(HTTPField("Content-Type", "application/problem+json"))
        headers.append(HTTPField("Cache-Control", "no-store"))
        if let retryAfter { headers.append(HTTPField("Retry-After", String(retryAfter))) }
        return HTTPResponse(status: status, headers: headers, body: writer.take())
    }

    /// The problem that the HTTP server found by itself; it adds Retry-After where that belongs.
    init(_ refusal: HTTPRefusal) {
        let code: ProblemCode =
            switch refusal.reason {
            case .malformed, .urlTooLong, .headersTooLarge: .invalidRequest
            case .timedOut: .requestTimeout
            case .bodyTooLarge: .batchTooLarge
            case .unsupportedEncoding: .unsupportedMediaType
            case .overloaded: .overloaded
            case .invalidResponse: .internalError
            }
        self.init(code, status: refusal.reason.status, refusal.detail)
        retryAfter = nil
    }
}
