import HTTP

/// Lets web pages of configured origins use the gateway (CORS, https://fetch.spec.whatwg.org/#http-cors-protocol).
///
/// A browser sends requests of a page to another origin in any case, but those with a header of the client contract only after a preflight has
/// allowed them, and it shows the page a response only if that names the page's origin.
struct CrossOrigin: Sendable {
    /// In place of origins: every page.
    static let everyOrigin = "*"

    /// The response headers beyond the simple ones that pages may read.
    private static let exposed =
        "ETag, Retry-After, RateLimit, RateLimit-Policy, WWW-Authenticate, Downloaded-Till, Content-Digest, Repr-Digest, "
        + "Content-Range"
    private static let requestHeaders =
        "Authorization, Content-Type, Content-Encoding, Prefer, Last-Event-ID, If-None-Match, Cache-Control, "
        + "Content-Digest, Range, If-Range, X-Device-Id"
    /// Those by which callers are named without authentication.
    private static let callerHeaders = "X-Sync-Id, X-Sync-Links"
    /// Two hours in seconds, the most that Chromium keeps a preflight's result.
    private static let maximumAge = "7200"

    private let origins: [String]
    let allowsEvery: Bool
    private let allowedHeaders: String

    /// - Parameter origins: as browsers send them; `nil` is returned for none.
    init?(_ origins: [String], trustsEveryCaller: Bool) {
        if origins.isEmpty { return nil }
        self.origins = origins
        allowsEvery = origins.contains { $0.utf8.elementsEqual(Self.everyOrigin.utf8) }
        allowedHeaders = Self.requestHeaders + (trustsEveryCaller ? ", " + Self.callerHeaders : "")
    }

    /// What every response to a request with these headers says about origins.
    func fields(for headers: HTTPHeaders) -> [HTTPField] {
        // A cache must not give the response for one origin to pages of another.
        let varies = allowsEvery ? [] : [HTTPField("Vary", "Origin")]
        guard let origin = allowedOrigin(headers) else { return varies }
        return varies + [
            HTTPField("Access-Control-Allow-Origin", origin), HTTPField("Access-Control-Expose-Headers", Self.exposed),
        ]
    }

    /// The headers by which a preflight allows the methods of a path; empty for other requests and origins.
    ///
    /// - Parameter methods: the value of `Allow`.
    func preflightFields(for request: HTTPRequest, methods: String) -> [HTTPField] {
        guard request.method == .options, request.headers.bytes(of: "access-control-request-method") != nil,
            allowedOrigin(request.headers) != nil
        else { return [] }
        return [
            HTTPField("Access-Control-Allow-Methods", methods),
            HTTPField("Access-Control-Allow-Headers", allowedHeaders),
            HTTPField("Access-Control-Max-Age", Self.maximumAge),
        ]
    }

    private func allowedOrigin(_ headers: HTTPHeaders) -> String? {
        let sent = headers.all("origin")
        guard sent.count == 1 else { return nil }
        if allowsEvery { return Self.everyOrigin }
        return origins.first { sent[0].elementsEqual($0.utf8) }
    }

    /// Why a text is not an origin as browsers send it; `nil` if it is one.
    static func problem(with origin: String) -> String? {
        let parts = origin.utf8.split(separator: UInt8(ascii: ":"), maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, !parts[0].isEmpty, parts[1].starts(with: "//".utf8), parts[1].count > 2 else {
            return "must be scheme://host or scheme://host:port"
        }
        let isPlain = parts[1].dropFirst(2).allSatisfy { byte in
            byte > 0x20 && byte < 0x7F && !"/?#@\\\"".utf8.contains(byte)
        }
        guard isPlain else { return "must be scheme://host or scheme://host:port, without a path" }
        guard origin.utf8.elementsEqual(origin.lowercased().utf8) else {
            return "must be in lower case, as browsers send it"
        }
        let defaults = [("https://", ":443"), ("http://", ":80")]
        if let (_, port) = defaults.first(where: { origin.hasPrefix($0.0) && origin.hasSuffix($0.1) }) {
            return "must not have the default port \(port.dropFirst()), which browsers leave out"
        }
        return nil
    }
}
