import ThreadExecutor

/// The certificate and key of a server, as PEM files; read when it starts, and again while it runs.
package struct HTTPTLSFiles: Sendable {
    /// The certificate, followed by those between it and the root.
    package var certificate: String
    /// Its private key, without a password.
    package var key: String

    package init(certificate: String, key: String) {
        self.certificate = certificate
        self.key = key
    }
}

/// Where a server listens, and its limits for clients.
///
/// The memory it can come to: for each of `maxConnections` some 5 KB and three quarters of `maxHeaderBytes`, or one and
/// a half times that limit once it has served a second request; `maxBytesInFlight`; `maxAnswerBytesInFlight`, and 64
/// KiB for each of `maxConnections`. Every connection takes a file descriptor: the server raises its soft limit to what
/// it needs, up to the hard one.
package struct HTTPServerConfiguration: Sendable {
    /// The name or address to listen at; `0.0.0.0` and `::` mean all.
    package var host = "127.0.0.1"
    /// The port, 0 for any that is free.
    package var port: UInt16 = 0
    /// The certificate for HTTPS; `nil` for plain HTTP.
    package var tls: HTTPTLSFiles?

    /// How often the certificate's files are read; a change of their content applies to new connections.
    package var certificateInterval: Duration = .seconds(5)

    /// How many threads serve connections, 1-256; `nil` for one a processor, and at least two.
    ///
    /// More threads cost a thread switch with almost every request. Waking a waiting response scans all that wait on its thread,
    /// so that a hundred thousand waiting streams need more threads.
    package var threads: Int?

    /// The most connections at a time, 1-1,000,000; further ones are closed at once.
    package var maxConnections = 16_384
    /// The most connections of one client: one IPv4 address or one IPv6 /64 network; `nil` for no such limit, which is
    /// right behind a proxy.
    package var maxConnectionsPerClient: Int? = 1024
    /// The most bytes of a request line and headers together, 512-65,536.
    ///
    /// Far beyond it (about half as much again, or many headers) the library under the server refuses them itself, with
    /// the same status and a page of its own.
    package var maxHeaderBytes = 4096
    /// The most bytes of a request's target, 1-65,536.
    package var maxURLBytes = 2048
    /// The most bytes of a body, before and after decompression.
    package var maxBodyBytes = 4 << 20
    /// The most bytes of all bodies, those being received and those that handlers hold.
    ///
    /// An address (where `maxConnectionsPerClient` is set) or a caller with several bodies holds at most as many as are free.
    /// Memory is reserved as a body grows, without waiting. A request whose body is declared larger than what is left is
    /// refused with 503 before the body is read; one that cannot reserve more is refused with 503 and releases what it had,
    /// so that half-received bodies cannot block each other. Requests without a body reserve nothing and are always served.
    package var maxBytesInFlight = 256 << 20
    /// The most bytes of all answers' bodies that clients have not taken yet, those of at most 64 KiB, shared ones and
    /// streams apart.
    ///
    /// A caller, or for requests whose handler names none an address, holds at most as many as are free. An answer beyond it
    /// becomes 503: so clients that ask and do not read can neither fill the memory nor take it from others. One larger than
    /// the limit goes through alone.
    package var maxAnswerBytesInFlight = 256 << 20

    /// How long a whole request may take to arrive, from the connection or, for later requests, the request line to
    /// the end of the body.
    ///
    /// Within 1 ms to 1 day.
    package var requestTimeout: Duration = .seconds(30)
    /// The bytes a second that a client must send, beyond `requestTimeout`, of a body that the handler reads in pieces.
    ///
    /// From 1; what the handler does not take yet is not the client's time.
    package var leastSendRate = 4096
    /// The bytes a second that a client must take of a response above 64 KiB, counted from the end of `idleTimeout`; a slower
    /// one's connection is closed, since it holds a share of `maxAnswerBytesInFlight`.
    ///
    /// From 1; streams apart.
    package var leastReadRate = 4096
    /// How long a connection may be idle between requests, and a client may leave a response unread.
    ///
    /// Whole seconds, 1 s to 1 day. The first line of a further request has this and `requestTimeout` together.
    package var idleTimeout: Duration = .seconds(75)

    /// The size in bytes from which a compressible response is compressed.
    package var compressionThreshold = 1024
    /// The size in bytes above which it is compressed in a task and not by the thread that serves the connection.
    package var inlineCompressionLimit = 16_384
    /// The level of gzip, 1 (fast) to 9 (small).
    package var compressionLevel = 1

    /// Returns the body of the responses that the server sends without a handler.
    ///
    /// The server sets the status and headers such as Retry-After. The library under the server responds with a page of its
    /// own to what it cannot parse: request lines, header lines and chunks that break the grammar.
    package var formatRefusal: @Sendable (HTTPRefusal) -> HTTPResponse = HTTPRefusal.plainText
    /// Makes the headers that every response to a request gets beside its own, by those of the request; `nil`: none.
    ///
    /// Called by the server's threads when the headers have arrived. The library's own pages do not get them.
    package var commonFields: (@Sendable (HTTPHeaders) -> [HTTPField])?
    /// Receives events for operators; called by the server's threads, so it must not wait.
    package var onEvent: @Sendable (HTTPServerEvent) -> Void = { _ in }

    package init() {}

    var threadCount: Int { threads ?? max(2, DedicatedThread.processors) }

    func validate() throws(HTTPServerError) {
        if let threads { try Self.check("threads", threads, in: 1...256) }
        try Self.check("maxConnections", maxConnections, in: 1...1_000_000)
        try Self.check("maxConnectionsPerClient", maxConnectionsPerClient ?? 1, in: 1...1_000_000)
        try Self.check("maxHeaderBytes", maxHeaderBytes, in: 512...65_536)
        try Self.check("maxURLBytes", maxURLBytes, in: 1...65_536)
        try Self.check("maxBodyBytes", maxBodyBytes, in: 0...(1 << 31))
        try Self.check("maxBytesInFlight", maxBytesInFlight, in: 0...(1 << 48))
        try Self.check("maxAnswerBytesInFlight", maxAnswerBytesInFlight, in: 0...(1 << 48))
        try Self.check("leastSendRate", leastSendRate, in: 1...(1 << 40))
        try Self.check("leastReadRate", leastReadRate, in: 1...(1 << 40))
        try Self.check("compressionThreshold", compressionThreshold, in: 0...Int.max)
        try Self.check("inlineCompressionLimit", inlineCompressionLimit, in: 0...Int.max)
        try Self.check("compressionLevel", compressionLevel, in: 1...9)
        guard requestTimeout >= .milliseconds(1), requestTimeout <= .seconds(86_400) else {
            throw .invalidConfiguration(key: "requestTimeout", reason: "must be 1 ms to 1 day")
        }
        guard idleTimeout >= .seconds(1), idleTimeout <= .seconds(86_400), idleTimeout.components.attoseconds == 0
        else {
            throw .invalidConfiguration(key: "idleTimeout", reason: "must be whole seconds, 1 s to 1 day")
        }
    }

    private static func check(_ key: String, _ value: Int, in range: ClosedRange<Int>) throws(HTTPServerError) {
        guard range.contains(value) else {
            throw .invalidConfiguration(
                key: key, reason: "is \(value), must be \(range.lowerBound) to \(range.upperBound)")
        }
    }
}
