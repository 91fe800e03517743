import HTTP
import JSONText
import WebTokens

/// The error codes of the client contract; stable.
package enum ProblemCode: String, Sendable, Hashable, CaseIterable {
    /// The body is not JSON, or not UTF-8.
    case malformedJSON = "malformed_json"
    /// The caller could not be authenticated.
    case unauthenticated
    /// The caller has no permission for the request.
    case forbidden
    /// The device was revoked by its owner.
    case deviceRevoked = "device_revoked"
    /// The caller's credentials are for another device.
    case wrongDevice = "wrong_device"
    /// No such resource; for a batch: no outcome is known.
    case notFound = "not_found"
    /// The row is not as the request needs it; for requests to faces.
    case conflict
    /// The row has children, and the request does not say where they go; for requests to faces.
    case hasChildren = "has_children"
    /// The row is deleted; for requests to faces.
    case rowDeleted = "row_deleted"
    /// A change was refused; for requests to faces.
    case changeRefused = "change_refused"
    /// A position is above everything that the log has; for requests to faces.
    case positionAhead = "position_ahead"
    /// The resource does not support the method.
    case methodNotAllowed = "method_not_allowed"
    /// A file is not the one whose digest the request names; for requests to faces.
    case digestMismatch = "digest_mismatch"
    /// The request did not arrive completely in time.
    case requestTimeout = "request_timeout"
    /// More bytes or changes than the limits allow.
    case batchTooLarge = "batch_too_large"
    /// The body is not application/json, or its encoding is not gzip.
    case unsupportedMediaType = "unsupported_media_type"
    /// The envelope is invalid, or the request is not valid HTTP.
    case invalidRequest = "invalid_request"
    /// The caller exceeds its own quota.
    case rateLimited = "rate_limited"
    /// The gateway is at capacity.
    case overloaded
    /// A part of the pipeline is not available at the moment.
    case notReady = "not_ready"
    /// The log has no space left.
    case storageFull = "storage_full"
    /// The batch is durable, but not ordered yet.
    case outcomePending = "outcome_pending"
    /// The server made a response that it could not send: a bug of the server.
    case internalError = "internal_error"

    package var status: Int {
        switch self {
        case .malformedJSON, .digestMismatch: 400
        case .unauthenticated: 401
        case .forbidden, .deviceRevoked, .wrongDevice: 403
        case .notFound: 404
        case .methodNotAllowed: 405
        case .conflict, .hasChildren: 409
        case .positionAhead, .rowDeleted: 410
        case .requestTimeout: 408
        case .batchTooLarge: 413
        case .unsupportedMediaType: 415
        case .invalidRequest, .changeRefused: 422
        case .rateLimited: 429
        case .overloaded, .notReady, .storageFull: 503
        case .outcomePending: 504
        case .internalError: 500
        }
    }

    package var title: String {
        switch self {
        case .malformedJSON: "The body is no JSON"
        case .unauthenticated: "Who is calling?"
        case .forbidden: "Not allowed"
        case .deviceRevoked: "The device was revoked"
        case .wrongDevice: "Another device"
        case .notFound: "Not found"
        case .methodNotAllowed: "Method not allowed"
        case .conflict: "A conflict"
        case .hasChildren: "The row has children"
        case .rowDeleted: "The row is deleted"
        case .changeRefused: "The change was refused"
        case .positionAhead: "A position of another history"
        case .digestMismatch: "Another file than the digest's"
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

/// An error response: `application/problem+json` (RFC 9457).
package struct Problem: Error, Sendable {
    /// The path of the document that explains the codes, with an anchor for each.
    static let documentation = "/docs/errors.md"

    package let code: ProblemCode
    /// The code's own, unless HTTP has a more exact one.
    package let status: Int
    /// What is wrong; repeats no data of the request except field names and positions.
    package let detail: String
    /// The byte offset in the decompressed body.
    package var position: Int?
    /// Why a token was refused.
    package var cause: TokenRefusal.Cause?
    /// Seconds until the client should retry.
    package var retryAfter: Int?
    package var headers: [HTTPField] = []
    /// Further members, each as JSON.
    package var members: [(name: String, json: [UInt8])] = []

    package init(_ code: ProblemCode, _ detail: String, position: Int? = nil, retryAfter: Int? = nil) {
        self.init(code, status: code.status, detail, position: position, retryAfter: retryAfter)
    }

    package init(_ code: ProblemCode, status: Int, _ detail: String, position: Int? = nil, retryAfter: Int? = nil) {
        self.code = code
        self.status = status
        self.detail = detail
        self.position = position
        switch code {
        case .rateLimited, .overloaded, .notReady, .storageFull: self.retryAfter = retryAfter ?? 1
        default: self.retryAfter = retryAfter
        }
    }

    package var response: HTTPResponse {
        var writer = JSONWriter(capacity: 256)
        writer.object { writer in
            writer.member("type", "\(Self.documentation)#\(code.rawValue)")
            writer.member("title", code.title)
            writer.member("status", status)
            writer.member("code", code.rawValue)
            writer.member("detail", detail)
            if let position { writer.member("position", position) }
            if let cause { writer.member("cause", cause.rawValue) }
            for member in members {
                writer.name(member.name)
                writer.raw(member.json)
            }
        }
        var headers = headers
        headers.append(HTTPField("Content-Type", "application/problem+json"))
        headers.append(HTTPField("Cache-Control", "no-store"))
        if let retryAfter { headers.append(HTTPField("Retry-After", String(retryAfter))) }
        return HTTPResponse(status: status, headers: headers, body: writer.take())
    }

    /// For a method that a path does not have.
    ///
    /// - Parameter methods: the value of the header `Allow`.
    init(allowing methods: String) {
        self.init(.methodNotAllowed, "allowed: \(methods)")
        headers = [HTTPField("Allow", methods)]
    }

    /// A refusal of the HTTP server, which adds Retry-After itself.
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
