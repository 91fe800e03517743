import Configuration

/// The settings that both ends of the link share; the executable scopes them with `link.`.
package struct LinkConfiguration: ConfigurationComponent {
    /// How many heartbeats the other end may be silent.
    static let silentBeats = 3

    private var keyText: Secret?
    private var acceptedKeyText: Secret?
    /// `nil`: nothing is encrypted, and only addresses of this machine are allowed.
    package var key: LinkKey?
    /// A second key that the other end may have, while the key is changed; this end uses ``key``.
    package var acceptedKey: LinkKey?
    package var heartbeat: Duration = .milliseconds(750)
    package var maximumMessageBytes = 64 << 20

    package init() {}

    package init(key: LinkKey?, accepting acceptedKey: LinkKey? = nil) {
        self.key = key
        self.acceptedKey = acceptedKey
    }

    package static var settings: [Setting<Self>] {
        Setting(
            optional: "key", \.keyText, .secret(lengths: 64...64),
            "Secret that authenticates gateways and fan-outs: 64 hexadecimal characters (openssl rand -hex 32)."
        )
        Setting(
            optional: "accepted-key", \.acceptedKeyText, .secret(lengths: 64...64),
            "A second secret that the other end may have, while link.key is changed without a stop."
        )
        Setting(
            "heartbeat", \.heartbeat, .duration(in: .milliseconds(50)...(.seconds(60))),
            "Heartbeat interval, the same at both ends; an end is disconnected after three intervals without one."
        )
        Setting(
            "max-message-bytes", \.maximumMessageBytes, .byteSize(in: (1 << 20)...(1 << 30)),
            "Size of the largest message, which holds a whole page; the same at both ends.")
    }

    package mutating func validate(_ context: ValidationContext<Self>) throws(ConfigurationProblem) {
        if keyText == nil, acceptedKeyText != nil {
            throw context.problem(with: \.acceptedKeyText, "needs link.key beside it")
        }
        key = try Self.key(\.keyText, keyText, context)
        acceptedKey = try Self.key(\.acceptedKeyText, acceptedKeyText, context)
    }

    private static func key(
        _ property: any PartialKeyPath<Self> & Sendable, _ text: Secret?, _ context: ValidationContext<Self>
    ) throws(ConfigurationProblem) -> LinkKey? {
        guard let text else { return nil }
        if let key = LinkKey(text) { return key }
        throw context.problem(
            with: property, "has other characters than 0 to 9 and a to f; make one with: openssl rand -hex 32")
    }

    /// Traps on values that no key allows.
    func requirePositiveBounds() {
        precondition(heartbeat > .zero && maximumMessageBytes > 0, "sizes and times of a link are above zero")
    }
}

/// The settings of the end that serves a fan-out; the executable scopes them with `link.`, too.
package struct FanOutServerConfiguration: ConfigurationComponent {
    /// An IP address; `localhost` means 127.0.0.1.
    package var address = NetworkAddress(host: "127.0.0.1", port: 7790)!
    /// 65,536: a few gateways with all that they may have, at about a kilobyte each.
    package var maximumRequests = 65_536
    /// 16,384: as many as callers may wait for outcomes in a partition.
    package var maximumRequestsOfGateway = 16_384
    package var maximumUnreadBytes = 64 << 20

    package init() {}

    package init(address: NetworkAddress) { self.address = address }

    package static var settings: [Setting<Self>] {
        Setting(
            "address", \.address, .address,
            "Where a fan-out listens for gateways, an IP address and a port; beyond loopback a key is required.")
        Setting(
            "max-requests", \.maximumRequests, .integer(in: 1...1_000_000),
            "Requests of all gateways that a fan-out has in flight, waits included; more are answered not_ready.")
        Setting(
            "max-requests-of-gateway", \.maximumRequestsOfGateway, .integer(in: 1...1_000_000),
            "Requests of one gateway in flight.")
        Setting(
            "max-unread-bytes", \.maximumUnreadBytes, .byteSize(in: (1 << 20)...(1 << 34)),
            "Size of the responses that a gateway may leave unread; more requests of it are answered not_ready.")
    }

    /// Traps on values that no key allows.
    func requirePositiveBounds() {
        precondition(
            min(maximumRequests, maximumRequestsOfGateway, maximumUnreadBytes) >= 1,
            "sizes and counts of a link are at least 1")
    }
}

/// The settings of a gateway's end; the executable scopes them with `link.`, too.
package struct RemoteFanOutConfiguration: ConfigurationComponent {
    private var addresses = ["127.0.0.1:7790"]
    /// The fan-outs to connect to.
    package var fanOuts: [NetworkAddress] = []
    package var maximumRequests = 16_384
    package var answerTimeout: Duration = .seconds(5)

    package init() {}

    package init(fanOuts: [NetworkAddress]) { self.fanOuts = fanOuts }

    package static var settings: [Setting<Self>] {
        Setting(
            "fan-outs", \.addresses, .list(counts: 1...1000),
            "The fan-outs that a gateway connects to, each as host:port; they report which partitions they serve.")
        Setting(
            "max-requests-to-fan-out", \.maximumRequests, .integer(in: 1...1_000_000),
            "Requests that a gateway has in flight with one fan-out; more are answered not_ready.")
        Setting(
            "answer-timeout", \.answerTimeout, .duration(in: .milliseconds(100)...(.seconds(600))),
            "How long a response may take beyond the time that its request allows the fan-out to wait.")
    }

    package mutating func validate(_ context: ValidationContext<Self>) throws(ConfigurationProblem) {
        for text in addresses {
            guard let address = NetworkAddress(text), address.port > 0 else {
                throw context.problem(with: \.addresses, "\"\(text)\" is no address; expected host:port")
            }
            guard !fanOuts.contains(address) else {
                throw context.problem(with: \.addresses, "\"\(text)\" is named twice")
            }
            fanOuts.append(address)
        }
    }

    /// Traps on values that no key allows.
    func requirePositiveBounds() {
        precondition(
            !fanOuts.isEmpty && maximumRequests >= 1 && answerTimeout > .zero,
            "a gateway has a fan-out, and its counts and times are above zero")
    }
}
