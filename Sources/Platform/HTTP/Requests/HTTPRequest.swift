package struct HTTPRequest: Sendable {
    package let method: HTTPMethod
    /// The path as sent, percent-encoded, without the query; `*` for `OPTIONS *`.
    package let rawPath: String
    /// The path, split at `/` and then percent-decoded: `/v1/a%2Fb` is `["v1", "a/b"]`, `/` is empty, and a trailing
    /// slash makes an empty last segment.
    ///
    /// Valid UTF-8 without NUL; the server refuses other paths with 400.
    package let segments: [String]
    /// Decoded, in the order sent.
    package let query: [HTTPQueryItem]
    package let headers: HTTPHeaders
    /// The TCP peer, which may be a proxy.
    package let peer: HTTPPeer
    package let version: HTTPVersion
    /// Decompressed; empty if there is none, and if it is in ``bodyPieces``.
    package internal(set) var body: HTTPBody
    /// The body while it arrives, where ``HTTPBodyPolicy/stream(upTo:caller:context:)`` asked for it and there is one.
    package internal(set) var bodyPieces: HTTPBodyPieces?
    /// What ``HTTPHandler/bodyPolicy(for:)`` found out, for ``HTTPHandler/respond(to:)``.
    package var context: (any Sendable)?
}

package enum HTTPVersion: Sendable {
    /// HTTP/1.0: by default one request for each connection, and no chunked responses.
    case http10
    case http11
}
