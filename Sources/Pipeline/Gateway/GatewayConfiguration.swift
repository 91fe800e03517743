import Configuration
import HTTP

/// The settings of the gateway; the executable scopes them with `gateway.`.
package struct GatewayConfiguration: ConfigurationComponent {
    private static let defaults = GatewayConfiguration()

    static let address = ConfigurationKey(
        "address", .address, default: defaults.address,
        "Where requests are accepted; without authentication, loopback only.")
    static let certificate = ConfigurationKey(
        optional: "tls.certificate", .path, "PEM file with the certificate and those between it and the root: HTTPS.")
    static let key = ConfigurationKey(optional: "tls.key", .path, "PEM file with the certificate's private key.")
    static let threads = ConfigurationKey(
        "threads", .integer(in: 0...256), default: defaults.server.threads ?? 0,
        "Threads that serve connections; 0 for one a processor, and at least two.")
    static let maxConnections = ConfigurationKey(
        "max-connections", .integer(in: 1...1_000_000), default: defaults.server.maxConnections,
        "Connections at a time.")
    static let maxConnectionsPerAddress = ConfigurationKey(
        "max-connections-per-address", .integer(in: 0...1_000_000),
        default: defaults.server.maxConnectionsPerClient ?? 0,
        "Connections of one address at a time; 0 for no limit, as behind a proxy.")
    static let maxHeaderBytes = ConfigurationKey(
        "max-header-bytes", .byteSize(in: 512...65_536), default: defaults.server.maxHeaderBytes,
        "Size of a request's line and headers, links included; each connection may hold half as much again.")
    static let maxBytesInFlight = ConfigurationKey(
        "max-bytes-in-flight", .byteSize(in: (1 << 20)...(1 << 40)), default: defaults.server.maxBytesInFlight,
        "Size of all request bodies on their way in; beyond it requests are refused with 503.")
    static let answerBytesInFlight = ConfigurationKey(
        "answer-bytes-in-flight", .byteSize(in: (1 << 20)...(1 << 40)), default: defaults.server.maxAnswerBytesInFlight,
        "Size of all larger answers that clients have not taken yet; beyond it requests are answered with 503.")
    static let requestTimeout = ConfigurationKey(
        "request-timeout", .duration(in: .milliseconds(1)...(.seconds(86_400))),
        default: defaults.server.requestTimeout,
        "How long a whole request may take to arrive, however it trickles.")
    static let idleTimeout = ConfigurationKey(
        "idle-timeout", .duration(in: .seconds(1)...(.seconds(86_400))), default: defaults.server.idleTimeout,
        "How long a connection may lie idle between requests, in whole seconds.")
    static let outcomeWait = ConfigurationKey(
        "outcome-wait", .duration(in: .milliseconds(1)...(.seconds(300))), default: defaults.outcomeWait,
        "How long an answer waits for the outcome of a batch before it says outcome_pending.")
    static let keepAlive = ConfigurationKey(
        "keep-alive", .duration(in: .seconds(1)...(.seconds(3600))), default: defaults.keepAlive,
        "Time between the comments that keep event streams alive, in whole seconds.")
    static let pageBytes = ConfigurationKey(
        "page-bytes", .byteSize(in: 1024...(64 << 20)), default: defaults.pageBytes,
        "Size of the rows of a page, after which it ends; one row is sent whatever its size.")
    static let maxWaiting = ConfigurationKey(
        "max-waiting", .integer(in: 1...1_000_000), default: defaults.maxWaiting,
        "Requests that may wait for an outcome or a long poll at a time; beyond it requests are refused with 503.")
    static let uploadBytesInFlight = ConfigurationKey(
        "upload-bytes-in-flight", .byteSize(in: (1 << 20)...(1 << 40)), default: defaults.uploadBytesInFlight,
        "Size of all uploads that the log does not have durably yet; beyond it they are refused with 503.")
    static let callerBytesInFlight = ConfigurationKey(
        "caller-bytes-in-flight", .byteSize(in: 1024...(1 << 40)), default: defaults.callerBytesInFlight,
        "Size of one caller's uploads that the log does not have durably yet; beyond it they are refused with 429.")
    static let callerChangesPerSecond = ConfigurationKey(
        "caller-changes-per-second", .integer(in: 0...1_000_000_000), default: defaults.callerChangesPerSecond,
        "Changes a second that one caller may send, on average over ten seconds; 0 for no limit.")
    static let maxLag = ConfigurationKey(
        "max-lag", .duration(in: .milliseconds(1)...(.seconds(86_400))), default: defaults.maxLag,
        "How long an upload may wait until it can be pulled; while one waits longer, its partition takes no more than one a second."
    )

    /// Every key.
    package static let keys: [any DeclaredConfigurationKey] = [
        address, certificate, key, threads, maxConnections, maxConnectionsPerAddress, maxHeaderBytes, maxBytesInFlight,
        answerBytesInFlight, requestTimeout, idleTimeout, outcomeWait, keepAlive, pageBytes, maxWaiting,
        uploadBytesInFlight, callerBytesInFlight, callerChangesPerSecond, maxLag,
    ]

    /// Where requests are accepted.
    package var address = NetworkAddress(host: "127.0.0.1", port: 7777)!
    /// The HTTP server's own settings; the service sets its address, the size of bodies and what it calls.
    package var server = HTTPServerConfiguration()
    /// How long an answer waits for an outcome.
    package var outcomeWait: Duration = .seconds(10)
    /// Time between the comments of event streams.
    package var keepAlive: Duration = .seconds(15)
    /// Size of the rows of a page.
    package var pageBytes = 4 << 20
    /// Requests that may wait at a time.
    package var maxWaiting = 20_000
    /// Size of all uploads under way.
    package var uploadBytesInFlight = 256 << 20
    /// Size of one caller's uploads under way.
    package var callerBytesInFlight = 32 << 20
    /// Changes a second of one caller; 0 for no limit.
    package var callerChangesPerSecond = 0
    /// How long an upload may wait until it can be pulled, before its partition takes no more.
    package var maxLag: Duration = .seconds(60)

    /// Makes the defaults.
    package init() {}

    /// Reads the settings.
    package init(from reader: ConfigurationReader) throws(ConfigurationProblem) {
        address = try reader.read(Self.address)
        let threads = try reader.read(Self.threads)
        server.threads = threads == 0 ? nil : threads
        server.maxConnections = try reader.read(Self.maxConnections)
        let perAddress = try reader.read(Self.maxConnectionsPerAddress)
        server.maxConnectionsPerClient = perAddress == 0 ? nil : perAddress
        server.maxHeaderBytes = try reader.read(Self.maxHeaderBytes)
        server.maxBytesInFlight = try reader.read(Self.maxBytesInFlight)
        server.maxAnswerBytesInFlight = try reader.read(Self.answerBytesInFlight)
        server.requestTimeout = try reader.read(Self.requestTimeout)
        server.idleTimeout = try reader.read(Self.idleTimeout)
        outcomeWait = try reader.read(Self.outcomeWait)
        keepAlive = try reader.read(Self.keepAlive)
        pageBytes = try reader.read(Self.pageBytes)
        maxWaiting = try reader.read(Self.maxWaiting)
        uploadBytesInFlight = try reader.read(Self.uploadBytesInFlight)
        callerBytesInFlight = try reader.read(Self.callerBytesInFlight)
        callerChangesPerSecond = try reader.read(Self.callerChangesPerSecond)
        maxLag = try reader.read(Self.maxLag)
        switch (try reader.read(Self.certificate), try reader.read(Self.key)) {
        case (let certificate?, let key?): server.tls = HTTPTLSFiles(certificate: certificate, key: key)
        case (nil, nil): break
        case (nil, _?): throw reader.problem(with: Self.key, "needs tls.certificate beside it")
        case (_?, nil): throw reader.problem(with: Self.certificate, "needs tls.key beside it")
        }
        for (key, value) in [(Self.idleTimeout, server.idleTimeout), (Self.keepAlive, keepAlive)]
        where value.components.attoseconds != 0 {
            throw reader.problem(with: key, "must be whole seconds")
        }
    }
}
