/// A request, whole: the server calls its handler when the body has come.
public struct HTTPRequest: Sendable {
    /// GET, POST or another.
    public let method: HTTPMethod
    /// The path as it was sent, still percent-encoded, without the query; `*` for `OPTIONS *`.
    public let rawPath: String
    /// The path, split at `/` and percent-decoded afterwards: `/v1/a%2Fb` is `["v1", "a/b"]`, `/` is empty, and a
    /// trailing slash leaves an empty last segment.
    ///
    /// Valid UTF-8 without NUL; other paths are refused with 400.
    public let segments: [String]
    /// The query, decoded, in the order sent.
    public let query: [HTTPQueryItem]
    /// The headers.
    public let headers: HTTPHeaders
    /// Who sent it, as TCP says: a proxy's address where there is one.
    public let peer: HTTPPeer
    /// HTTP/1.0 or HTTP/1.1.
    public let version: HTTPVersion
    /// The body, decompressed; empty when there is none.
    public internal(set) var body: HTTPBody
}

/// The version of the protocol that a request speaks.
public enum HTTPVersion: Sendable {
    /// HTTP/1.0: one request a connection unless it asks otherwise, and no chunked answers.
    case http10
    /// HTTP/1.1.
    case http11
}
