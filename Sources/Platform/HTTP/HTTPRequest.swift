/// A request, whole: the server calls its handler when the body has come.
package struct HTTPRequest: Sendable {
    /// GET, POST or another.
    package let method: HTTPMethod
    /// The path as it was sent, still percent-encoded, without the query; `*` for `OPTIONS *`.
    package let rawPath: String
    /// The path, split at `/` and percent-decoded afterwards: `/v1/a%2Fb` is `["v1", "a/b"]`, `/` is empty, and a
    /// trailing slash leaves an empty last segment.
    ///
    /// Valid UTF-8 without NUL; other paths are refused with 400.
    package let segments: [String]
    /// The query, decoded, in the order sent.
    package let query: [HTTPQueryItem]
    /// The headers.
    package let headers: HTTPHeaders
    /// Who sent it, as TCP says: a proxy's address where there is one.
    package let peer: HTTPPeer
    /// HTTP/1.0 or HTTP/1.1.
    package let version: HTTPVersion
    /// The body, decompressed; empty when there is none.
    package internal(set) var body: HTTPBody
}

/// The version of the protocol that a request speaks.
package enum HTTPVersion: Sendable {
    /// HTTP/1.0: one request a connection unless it asks otherwise, and no chunked answers.
    case http10
    /// HTTP/1.1.
    case http11
}
