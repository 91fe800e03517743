/// One header of a response.
package struct HTTPField: Sendable {
    /// The name, as it is to be sent.
    package var name: String
    /// The value.
    ///
    /// One with a line break or NUL makes the server answer 500 instead.
    package var value: String

    /// Makes a header.
    package init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }
}

/// An answer: status, headers and a body or a stream.
///
/// The server itself adds Date, Content-Length or Transfer-Encoding, and Connection; a HEAD request gets the headers
/// that GET would.
package struct HTTPResponse: Sendable {
    /// What follows the headers.
    package enum Content: Sendable {
        /// All of it; the array is handed over, not copied.
        case bytes([UInt8])
        /// Pieces that come later, for example server-sent events.
        case stream(HTTPBodyStream)
    }

    /// The status code, 200-599.
    package var status: Int
    /// The headers, in this order.
    package var headers: [HTTPField]
    /// What follows the headers.
    package var content: Content
    /// Whether the bytes may be sent with gzip to clients that take it.
    ///
    /// Leave it `false` where secrets and text chosen by strangers stand side by side, and for what is compressed
    /// already. A stream is never compressed.
    package var isCompressible: Bool

    /// Makes an answer that is there as a whole.
    package init(status: Int, headers: [HTTPField] = [], body: [UInt8] = [], isCompressible: Bool = false) {
        self.status = status
        self.headers = headers
        self.content = .bytes(body)
        self.isCompressible = isCompressible
    }

    /// Makes an answer that comes in pieces.
    ///
    /// A stream serves one answer.
    package init(status: Int, headers: [HTTPField] = [], stream: HTTPBodyStream) {
        self.status = status
        self.headers = headers
        self.content = .stream(stream)
        self.isCompressible = false
    }

    /// Tells the stream, where there is one, that nobody will send it.
    func drop() {
        if case .stream(let stream) = content { stream.detach() }
    }

    /// Whether a header of that name (in lower case) is there.
    func hasHeader(_ name: StaticString) -> Bool {
        headers.contains { $0.name.utf8.equalsIgnoringCase(name) }
    }
}

/// What a handler gives for a request.
package enum HTTPAnswer: Sendable {
    /// The response, at once. It is sent by the thread that called: such a handler must not wait for anything.
    case response(HTTPResponse)
    /// Work that makes the response, in a task of its own, while the connection waits. The task is cancelled when the
    /// client goes away and when the server stops; what it returns then is dropped or sent in vain.
    case task(@Sendable () async -> HTTPResponse)
}

/// What a handler says to a request whose body has not been read yet.
package enum HTTPAdmission: Sendable {
    /// Read the body, within the server's limit.
    case accept
    /// Read the body up to so many bytes, counted after decompression; the server's own limit holds as well.
    case acceptUpTo(Int)
    /// Answer at once, without reading the body; the connection ends with it. A stream is not possible here.
    case refuse(HTTPResponse)
}

/// The application behind a server.
package protocol HTTPHandler: Sendable {
    /// Decides on a request with a body before the body is read; `request.body` is empty. Called by the server's own
    /// threads: it must not wait.
    func admit(_ request: HTTPRequest) -> HTTPAdmission

    /// Answers a whole request. Called by the server's own threads: it must not wait, but give a task.
    func respond(to request: HTTPRequest) -> HTTPAnswer
}

extension HTTPHandler {
    /// Accepts every body within the server's limit.
    package func admit(_ request: HTTPRequest) -> HTTPAdmission { .accept }
}
