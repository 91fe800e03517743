import Configuration
import HTTP

/// The settings of the gateway; the executable scopes them with `gateway.`.
package struct GatewayConfiguration: ConfigurationComponent {
    package var address = NetworkAddress(host: "127.0.0.1", port: 7777)!
    /// The HTTP server's own settings; the service sets its address, the size of bodies and its handlers.
    package var server = HTTPServerConfiguration()
    private var certificate: String?
    private var key: String?
    package var corsOrigins: [String] = []
    /// `nil`: only without authentication.
    package var demo: Bool?
    package var outcomeWait: Duration = .seconds(10)
    package var keepAlive: Duration = .seconds(15)
    package var pageBytes = 4 << 20
    package var maxWaiting = 20_000
    package var uploadBytesInFlight = 256 << 20
    package var callerBytesInFlight = 32 << 20
    /// A thousand devices that sync once a second; twice what an owner may have in a day.
    package var callerRates = Rates(
        requests: 1000, changes: 20_000, bytes: 32 << 20, dailyBytes: 2 << 30, pulledBytes: 64 << 20)
    /// More than a device reaches that sends one request after the other, beyond what it may save up.
    package var deviceRates = Rates(requests: 50, changes: 5000, bytes: 4 << 20, pulledBytes: 16 << 20)
    package var refusalDelay: Duration = .seconds(1)
    package var callerLag: Duration = .milliseconds(60)
    package var maxLag: Duration = .seconds(60)
    package var deviceInterval: Duration = .seconds(60)
    package var maxDevices = 10_000

    package init() {}

    package static var settings: [Setting<Self>] {
        Setting(
            "address", \.address, .address, "Where requests are accepted; without authentication, loopback only.")
        Setting(
            optional: "tls.certificate", \.certificate, .path,
            "PEM file with the certificate and those between it and the root: HTTPS.")
        Setting(optional: "tls.key", \.key, .path, "PEM file with the certificate's private key.")
        Setting(
            "cors-origins", \.corsOrigins, .list(counts: 0...1000),
            "Origins whose web pages may use the gateway (CORS), as https://app.example; * for all, which auth none does not allow; none by default."
        )
        Setting(
            optional: "demo", \.demo, .boolean,
            "Whether the demo page is served at /demo; where not set, only with auth none.")
        Setting(
            "threads", \.server.threads, .integerOrNone(upTo: 256),
            "Threads that serve connections; 0 for one a processor, and at least two.")
        Setting(
            "max-connections", \.server.maxConnections, .integer(in: 1...1_000_000), "Connections at a time.")
        Setting(
            "max-connections-per-address", \.server.maxConnectionsPerClient, .integerOrNone(upTo: 1_000_000),
            "Connections of one address at a time; 0 for no limit, as behind a proxy.")
        Setting(
            "max-header-bytes", \.server.maxHeaderBytes, .byteSize(in: 512...65_536),
            "Size of a request's line and headers, links included; each connection may hold half as much again.")
        Setting(
            "max-bytes-in-flight", \.server.maxBytesInFlight, .byteSize(in: (1 << 20)...(1 << 40)),
            "Size of all request bodies in flight; beyond it, and of one client beyond what others leave free, they get 503."
        )
        Setting(
            "answer-bytes-in-flight", \.server.maxAnswerBytesInFlight, .byteSize(in: (1 << 20)...(1 << 40)),
            "Size of all pages being read and larger responses that clients have not read yet; "
                + "a page that finds no share of it in outcome-wait is answered with 503.")
        Setting(
            "request-timeout", \.server.requestTimeout, .duration(in: .milliseconds(1)...(.seconds(86_400))),
            "How long a whole request may take to arrive.")
        Setting(
            "idle-timeout", \.server.idleTimeout, .duration(in: .seconds(1)...(.seconds(86_400))),
            "How long a connection may be idle between requests, in whole seconds.")
        Setting(
            "least-read-rate", \.server.leastReadRate, .byteSize(in: 1...(1 << 30)),
            "Bytes a second that a client must read of a response above 64KiB after idle-timeout; else it is disconnected."
        )
        Setting(
            "outcome-wait", \.outcomeWait, .duration(in: .milliseconds(1)...(.seconds(300))),
            "How long an answer waits for the outcome of a batch before it says outcome_pending.")
        Setting(
            "keep-alive", \.keepAlive, .duration(in: .seconds(1)...(.seconds(3600))),
            "Time between the comments that keep event streams alive, in whole seconds. Also the time in which a client of a face must make space for the next piece of a long answer; else it is disconnected."
        )
        Setting(
            "page-bytes", \.pageBytes, .byteSize(in: 1024...(64 << 20)),
            "Size of the rows of a page, after which it ends; one row is sent whatever its size. Also of the rows of conflicts."
        )
        Setting(
            "max-waiting", \.maxWaiting, .integer(in: 1...1_000_000),
            "Requests that may wait for an outcome, earlier uploads or a long poll at a time; beyond it requests are refused with 503."
        )
        Setting(
            "upload-bytes-in-flight", \.uploadBytesInFlight, .byteSize(in: (1 << 20)...(1 << 40)),
            "Size of all uploads that the log has not acknowledged yet; beyond it they are refused with 503. A quarter more may wait for earlier ones of their callers."
        )
        Setting(
            "caller-bytes-in-flight", \.callerBytesInFlight, .byteSize(in: 1024...(1 << 40)),
            "Size of one caller's uploads that the log has not acknowledged yet; beyond it they are refused with 429.")
        rates(
            "caller", \.callerRates.requests, \.callerRates.changes, \.callerRates.bytes, \.callerRates.pulledBytes)
        Setting(
            "caller-bytes-per-day", \.callerRates.dailyBytes, .byteSize(in: 0...(1 << 50)),
            "Bytes a day that one caller's uploads may take in the log: their changes, 64 more for each and 512 for each upload; a day's worth may be sent at once. 0 for no limit."
        )
        rates(
            "device", \.deviceRates.requests, \.deviceRates.changes, \.deviceRates.bytes, \.deviceRates.pulledBytes)
        Setting(
            "refusal-delay", \.refusalDelay, .duration(in: .zero...(.seconds(60))),
            "How long a refusal with 429, or a small page of a device that has pulled too much, is held back, so that a client that repeats it at once sends few; at once while requests wait for half of max-waiting."
        )
        Setting(
            "caller-lag", \.callerLag, .duration(in: .milliseconds(1)...(.seconds(3600))),
            "How much longer than the fastest of the last seconds in its partition, up to 250ms, an upload may take until it can be pulled; while a caller's take longer it may have fewer at a time, down to one, and others of it wait up to 5s."
        )
        Setting(
            "max-lag", \.maxLag, .duration(in: .milliseconds(1)...(.seconds(86_400))),
            "How long an upload may wait until it can be pulled; while one waits longer, its partition accepts one a second."
        )
        Setting(
            "device-interval", \.deviceInterval, .duration(in: .milliseconds(100)...(.seconds(3600))),
            "Time between two writes of the devices that were seen; what was seen since is lost when the process ends without a stop."
        )
        Setting(
            "max-devices", \.maxDevices, .integer(in: 1...1_000_000),
            "Devices of one caller that the registry keeps; those not seen for longest are forgotten.")
    }

    private static func rates(
        _ scope: String, _ requests: any WritableKeyPath<Self, Int> & Sendable,
        _ changes: any WritableKeyPath<Self, Int> & Sendable, _ bytes: any WritableKeyPath<Self, Int> & Sendable,
        _ pulledBytes: any WritableKeyPath<Self, Int> & Sendable
    ) -> [Setting<Self>] {
        [
            Setting(
                "\(scope)-requests-per-second", requests, .integer(in: 0...1_000_000_000),
                "Requests a second that one \(scope) may send, on average over ten seconds; beyond it they get 429. 0 for no limit."
            ),
            Setting(
                "\(scope)-changes-per-second", changes, .integer(in: 0...1_000_000_000),
                "Changes a second that one \(scope) may send, on average over ten seconds; 0 for no limit."),
            Setting(
                "\(scope)-bytes-per-second", bytes, .byteSize(in: 0...(1 << 40)),
                "Bytes a second of one \(scope)'s uploads, decompressed, and of the rows that they touch, on average over ten seconds; 0 for no limit."
            ),
            Setting(
                "\(scope)-pulled-bytes-per-second", pulledBytes, .byteSize(in: 0...(1 << 40)),
                "Bytes a second of the pages, outcomes and files that one \(scope) is sent, before compression, on average over ten seconds; 0 for no limit."
            ),
        ]
    }

    package mutating func validate(_ context: ValidationContext<Self>) throws(ConfigurationProblem) {
        switch (certificate, key) {
        case (let certificate?, let key?): server.tls = HTTPTLSFiles(certificate: certificate, key: key)
        case (nil, nil): break
        case (nil, _?): throw context.problem(with: \.key, "needs tls.certificate beside it")
        case (_?, nil): throw context.problem(with: \.certificate, "needs tls.key beside it")
        }
        for origin in corsOrigins where corsOrigins != [CrossOrigin.everyOrigin] {
            if let problem = CrossOrigin.problem(with: origin) {
                throw context.problem(with: \.corsOrigins, "\"\(origin)\" is no origin: it \(problem)")
            }
        }
        for property in [\Self.server.idleTimeout, \.keepAlive]
        where self[keyPath: property].components.attoseconds != 0 {
            throw context.problem(with: property, "must be whole seconds")
        }
    }
}

extension ConfigurationType where Value == Int? {
    /// An integer of which 0 means none.
    fileprivate static func integerOrNone(upTo bound: Int) -> ConfigurationType {
        let integer = ConfigurationType<Int>.integer(in: 0...bound)
        return ConfigurationType(
            placeholder: integer.placeholder, expected: integer.expected,
            parse: { text in integer.parse(text).map { $0 == 0 ? nil : $0 } }, render: { integer.render($0 ?? 0) })
    }
}
