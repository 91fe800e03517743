import Foundation

/// Sends requests to a server; ``URLSessionTransport`` is the one that `Weir` uses by default.
///
/// Provide another one to send requests through a stack of your own, or to inject faults in tests. It needs to repeat nothing: Weir
/// sends a request again where that is safe.
public protocol Transport: Sendable {
    /// Sends a request and receives the whole response, whatever its status.
    ///
    /// It must end soon when its task is cancelled: ``Weir/suspend()`` and ``Weir/close()`` wait for it.
    ///
    /// - Throws: any error if no complete response came. The request may have been carried out all the same.
    func send(_ request: TransportRequest) async throws -> TransportResponse

    /// Sends a request whose response is received while the server writes it: server-sent events.
    ///
    /// The stream of pieces ends where the response does, and fails where the connection does. Cancelling the task that reads it
    /// ends the connection.
    ///
    /// - Throws: any error if no response came.
    func open(_ request: TransportRequest) async throws -> TransportStream
}

/// A request to the server.
public struct TransportRequest: Sendable, Equatable {
    /// `GET` or `POST`.
    public var method: String
    /// With the query.
    public var url: URL
    /// By name; names are in lower case.
    public var headers: [String: String]
    /// Empty if the request has none.
    public var body: [UInt8]
    /// How long the server may be silent, in seconds, before the request has failed.
    public var timeout: TimeInterval

    /// Makes a request.
    public init(
        method: String, url: URL, headers: [String: String] = [:], body: [UInt8] = [], timeout: TimeInterval = 60
    ) {
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
        self.timeout = timeout
    }
}

/// A response that was received as a whole.
public struct TransportResponse: Sendable, Equatable {
    /// The HTTP status.
    public var status: Int
    /// By name; names are in lower case.
    public var headers: [String: String]
    /// Without any content encoding.
    public var body: [UInt8]

    /// Makes a response.
    public init(status: Int, headers: [String: String] = [:], body: [UInt8] = []) {
        self.status = status
        self.headers = headers
        self.body = body
    }
}

/// A response whose body is received while it is written.
public struct TransportStream: Sendable {
    /// The HTTP status.
    public var status: Int
    /// By name; names are in lower case.
    public var headers: [String: String]
    /// The body, without any content encoding.
    public var pieces: AsyncThrowingStream<[UInt8], any Error>

    /// Makes a response from its head and the pieces of its body.
    public init(
        status: Int, headers: [String: String] = [:], pieces: AsyncThrowingStream<[UInt8], any Error>
    ) {
        self.status = status
        self.headers = headers
        self.pieces = pieces
    }
}
