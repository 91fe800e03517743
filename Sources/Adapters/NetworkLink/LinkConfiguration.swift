import Configuration

/// What both ends of the link share; the executable scopes the keys with `link.`.
package struct LinkConfiguration: ConfigurationComponent {
    static let key = ConfigurationKey(
        optional: "key", .secret(lengths: 64...64),
        "What gateways and fan-outs of a cluster know each other by: 64 hexadecimal characters (openssl rand -hex 32).")
    static let heartbeat = ConfigurationKey(
        "heartbeat", .duration(in: .milliseconds(50)...(.seconds(60))), default: .milliseconds(750),
        "How often an end says that it is there, the same at both; three times as long without a sign, and it is gone.")
    static let maximumMessageBytes = ConfigurationKey(
        "max-message-bytes", .byteSize(in: (1 << 20)...(1 << 30)), default: 64 << 20,
        "Size of the largest message, which holds a whole page; the same at both ends.")

    /// Every key.
    package static let keys: [any DeclaredConfigurationKey] = [key, heartbeat, maximumMessageBytes]

    /// What the ends know each other by; `nil`: nothing is encrypted, and nobody beyond this machine is spoken to.
    package var key: LinkKey?
    /// How often both ends say that they are there; three times as long without a sign, and the other counts as gone.
    package var heartbeat: Duration
    /// The largest message in bytes.
    package var maximumMessageBytes: Int

    /// Sets what differs from the defaults; sizes and times of zero trap.
    package init(key: LinkKey? = nil, heartbeat: Duration = .milliseconds(750), maximumMessageBytes: Int = 64 << 20) {
        precondition(heartbeat > .zero && maximumMessageBytes > 0, "sizes and times of a link are above zero")
        self.key = key
        self.heartbeat = heartbeat
        self.maximumMessageBytes = maximumMessageBytes
    }

    /// Reads the settings.
    package init(from reader: ConfigurationReader) throws(ConfigurationProblem) {
        var key: LinkKey?
        if let text = try reader.read(Self.key) {
            key = LinkKey(text)
            if key == nil {
                throw reader.problem(
                    with: Self.key, "has other characters than 0 to 9 and a to f; make one with: openssl rand -hex 32")
            }
        }
        self.init(
            key: key, heartbeat: try reader.read(Self.heartbeat),
            maximumMessageBytes: try reader.read(Self.maximumMessageBytes))
    }

    /// How many beats the other end may be silent.
    static let silentBeats = 3
}

/// The settings of the end that serves a fan-out; the executable scopes them with `link.`, too.
package struct FanOutServerConfiguration: ConfigurationComponent {
    private static let defaults = FanOutServerConfiguration()

    static let address = ConfigurationKey(
        "address", .address, default: defaults.address,
        "Where a fan-out listens for gateways, an IP address and a port; beyond loopback a key is required.")
    static let maximumRequests = ConfigurationKey(
        "max-requests", .integer(in: 1...1_000_000), default: defaults.maximumRequests,
        "Questions of all gateways that a fan-out has under way, waits included; more are answered not_ready.")
    static let maximumRequestsOfGateway = ConfigurationKey(
        "max-requests-of-gateway", .integer(in: 1...1_000_000), default: defaults.maximumRequestsOfGateway,
        "Those of one gateway.")
    static let maximumUnreadBytes = ConfigurationKey(
        "max-unread-bytes", .byteSize(in: (1 << 20)...(1 << 34)), default: defaults.maximumUnreadBytes,
        "Size of the answers that a gateway may leave unread; more questions of it are answered not_ready.")

    /// Every key.
    package static let keys: [any DeclaredConfigurationKey] = [
        address, maximumRequests, maximumRequestsOfGateway, maximumUnreadBytes,
    ]

    /// Where to listen: an IP address; `localhost` stands for 127.0.0.1.
    package var address: NetworkAddress
    /// How many questions may be under way in all, those that wait for outcomes included.
    ///
    /// By default 65,536: a few gateways with all that they may have, at about a kilobyte each.
    package var maximumRequests: Int
    /// How many of one gateway.
    ///
    /// By default 16,384: as many as callers may wait for outcomes in a partition.
    package var maximumRequestsOfGateway: Int
    /// How many bytes of answers may be on the way to one gateway.
    package var maximumUnreadBytes: Int

    /// Sets what differs from the defaults; numbers below 1 trap.
    package init(
        address: NetworkAddress = NetworkAddress(host: "127.0.0.1", port: 7790)!, maximumRequests: Int = 65_536,
        maximumRequestsOfGateway: Int = 16_384, maximumUnreadBytes: Int = 64 << 20
    ) {
        precondition(
            min(maximumRequests, maximumRequestsOfGateway, maximumUnreadBytes) >= 1,
            "sizes and counts of a link are at least 1")
        self.address = address
        self.maximumRequests = maximumRequests
        self.maximumRequestsOfGateway = maximumRequestsOfGateway
        self.maximumUnreadBytes = maximumUnreadBytes
    }

    /// Reads the settings.
    package init(from reader: ConfigurationReader) throws(ConfigurationProblem) {
        self.init(
            address: try reader.read(Self.address), maximumRequests: try reader.read(Self.maximumRequests),
            maximumRequestsOfGateway: try reader.read(Self.maximumRequestsOfGateway),
            maximumUnreadBytes: try reader.read(Self.maximumUnreadBytes))
    }
}

/// The settings of a gateway's end; the executable scopes them with `link.`, too.
package struct RemoteFanOutConfiguration: ConfigurationComponent {
    static let fanOuts = ConfigurationKey(
        "fan-outs", .list(counts: 1...1000), default: ["127.0.0.1:7790"],
        "The fan-outs that a gateway asks, each as host:port; which partitions they serve is learned from them.")
    static let maximumRequests = ConfigurationKey(
        "max-requests-to-fan-out", .integer(in: 1...1_000_000), default: 16_384,
        "Questions that a gateway has under way with one fan-out; more are answered not_ready.")
    static let answerTimeout = ConfigurationKey(
        "answer-timeout", .duration(in: .milliseconds(100)...(.seconds(600))), default: .seconds(5),
        "How long an answer may take beyond the time that its question allows the fan-out to wait.")

    /// Every key.
    package static let keys: [any DeclaredConfigurationKey] = [fanOuts, maximumRequests, answerTimeout]

    /// Whom to ask.
    package var fanOuts: [NetworkAddress]
    /// How many questions may be under way with one of them.
    package var maximumRequests: Int
    /// How long an answer may take beyond the time that its question allows the fan-out to wait.
    package var answerTimeout: Duration

    /// Sets what differs from the defaults; no fan-outs, and numbers and times below 1, trap.
    package init(fanOuts: [NetworkAddress], maximumRequests: Int = 16_384, answerTimeout: Duration = .seconds(5)) {
        precondition(!fanOuts.isEmpty && maximumRequests >= 1 && answerTimeout > .zero, "a gateway asks somebody")
        self.fanOuts = fanOuts
        self.maximumRequests = maximumRequests
        self.answerTimeout = answerTimeout
    }

    /// Reads the settings.
    package init(from reader: ConfigurationReader) throws(ConfigurationProblem) {
        var fanOuts: [NetworkAddress] = []
        for text in try reader.read(Self.fanOuts) {
            guard let address = NetworkAddress(text), address.port > 0 else {
                throw reader.problem(with: Self.fanOuts, "\"\(text)\" is no address; expected host:port")
            }
            guard !fanOuts.contains(address) else {
                throw reader.problem(with: Self.fanOuts, "\"\(text)\" is named twice")
            }
            fanOuts.append(address)
        }
        self.init(
            fanOuts: fanOuts, maximumRequests: try reader.read(Self.maximumRequests),
            answerTimeout: try reader.read(Self.answerTimeout))
    }
}
