package struct HTTPField: Sendable {
    package var name: String
    /// With a line break or NUL in it the server responds 500 instead.
    package var value: String

    package init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }
}

/// The server adds Date, Content-Length or Transfer-Encoding, and Connection; HEAD gets the headers of GET.
package struct HTTPResponse: Sendable {
    package enum Content: Sendable {
        case bytes([UInt8])
        case stream(HTTPBodyStream)
    }

    /// 200-599.
    package var status: Int
    package var headers: [HTTPField]
    package var content: Content
    /// Whether the body may be compressed with gzip.
    ///
    /// Must be `false` if the body contains secrets beside text chosen by others, and should be if it is compressed
    /// already. A stream is never compressed.
    package var isCompressible: Bool
    /// Called when the response begins to be sent, with the status that is sent.
    ///
    /// It is 503 where the responses in flight had reached their limit. Not called for a client that has gone.
    package var onSend: (@Sendable (_ status: Int) -> Void)?
    /// What the handler reserved before it made the body; freed when the client has read the response.
    package var reservation: ResponseReservation?
    /// Whether the body is in memory in any case, for all responses that have it: it does not count in the ``ResponseBudget``.
    package var isShared = false

    package init(status: Int, headers: [HTTPField] = [], body: [UInt8] = [], isCompressible: Bool = false) {
        self.status = status
        self.headers = headers
        self.content = .bytes(body)
        self.isCompressible = isCompressible
    }

    /// - Parameter stream: used for this response only.
    package init(status: Int, headers: [HTTPField] = [], stream: HTTPBodyStream) {
        self.status = status
        self.headers = headers
        self.content = .stream(stream)
        self.isCompressible = false
    }

    /// Ends the stream of a response that will not be sent.
    func drop() {
        if case .stream(let stream) = content { stream.detach() }
    }

    /// The same response, with a body that is shared.
    package func withSharedBody() -> HTTPResponse {
        var response = self
        response.isShared = true
        return response
    }

    /// The bytes that count in the ``ResponseBudget``: none of a small body, of one that is shared, or of a stream.
    package var countedBytes: Int {
        guard case .bytes(let bytes) = content, !isShared, bytes.count > ServerCore.smallResponse else { return 0 }
        return bytes.count
    }

    func hasHeader(_ name: StaticString) -> Bool {
        headers.contains { $0.name.utf8.equalsIgnoringCase(name) }
    }
}

package enum HTTPHandlerResult: Sendable {
    /// Sent at once, on the calling thread.
    case response(HTTPResponse)
    /// Makes the response in a task while the connection is suspended. The task is cancelled when the client
    /// disconnects or the server stops.
    case task(@Sendable () async -> HTTPResponse)
}

/// What to do with the body of a request.
package enum HTTPBodyPolicy: Sendable {
    /// Reads the body, up to the server's limit.
    case accept
    /// Reads the body up to so many bytes after decompression, and up to the server's limit; its bytes count for the caller, if
    /// one is named, as for the address. The complete request has the context.
    case acceptUpTo(Int, caller: String? = nil, context: (any Sendable)? = nil)
    /// Calls the handler before the body arrives, which reads it from ``HTTPRequest/bodyPieces``; up to so many bytes, whatever the
    /// server's limit is. Only ``HTTPHandlerResult/task(_:)`` can read it.
    ///
    /// A response that is ready before the body has arrived ends the connection, and must be small and no stream. The client has
    /// `requestTimeout`, and then must send `leastSendRate`; the time in which the handler does not read is not counted. A body with a
    /// Content-Encoding is refused.
    case stream(upTo: Int, caller: String? = nil, context: (any Sendable)? = nil)
    /// Responds without reading the body and closes the connection; the response cannot have a stream.
    case refuse(HTTPResponse)
}

/// The application of a server.
///
/// Its methods are called on server threads: they must not block.
package protocol HTTPHandler: Sendable {
    /// Decides on the body of a request before it is read; `request.body` is empty.
    func bodyPolicy(for request: HTTPRequest) -> HTTPBodyPolicy

    /// Responds to a complete request, or to one whose body arrives meanwhile.
    func respond(to request: HTTPRequest) -> HTTPHandlerResult
}

extension HTTPHandler {
    package func bodyPolicy(for request: HTTPRequest) -> HTTPBodyPolicy { .accept }
}
