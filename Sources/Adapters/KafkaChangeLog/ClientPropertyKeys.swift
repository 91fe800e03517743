import Configuration

/// The properties of librdkafka that an operator can set: many have a key of their own, the others share `kafka.properties`.
enum PassedProperty {
    private static let texts: [(name: String, about: String)] = [
        ("client.id", "Name of this process in the brokers' logs and quotas; weir where nothing is set."),
        ("client.rack", "Rack of this process, for reading from the nearest copy."),
        ("security.protocol", "How brokers are spoken to: plaintext, ssl, sasl_plaintext or sasl_ssl."),
        ("ssl.ca.location", "File or folder of the certificates that brokers' certificates are checked with."),
        ("ssl.certificate.location", "File of this process's certificate (PEM)."),
        ("ssl.key.location", "File of this process's private key (PEM)."),
        ("ssl.keystore.location", "File of this process's key and certificate (PKCS#12)."),
        ("ssl.crl.location", "File of revoked certificates."),
        ("ssl.cipher.suites", "Ciphers that are allowed."),
        ("ssl.curves.list", "Curves that are allowed."),
        ("ssl.sigalgs.list", "Signature algorithms that are allowed."),
        ("ssl.endpoint.identification.algorithm", "How a broker's name is checked: https, or none."),
        ("enable.ssl.certificate.verification", "Whether brokers' certificates are checked."),
        ("sasl.mechanism", "How this process proves itself: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, GSSAPI, OAUTHBEARER."),
        ("sasl.username", "Its name, for PLAIN and SCRAM."),
        ("sasl.kerberos.service.name", "The brokers' Kerberos name."),
        ("sasl.kerberos.principal", "This process's Kerberos name."),
        ("sasl.kerberos.keytab", "File of its Kerberos keys."),
        ("sasl.kerberos.kinit.cmd", "Command that renews its Kerberos ticket."),
        ("sasl.kerberos.min.time.before.relogin", "Milliseconds between two renewals."),
        ("sasl.oauthbearer.method", "How OAuth tokens are got: oidc, or default."),
        ("sasl.oauthbearer.client.id", "This process's name at the token's issuer."),
        ("sasl.oauthbearer.scope", "Scope of the token."),
        ("sasl.oauthbearer.extensions", "Further names and values for the broker."),
        ("sasl.oauthbearer.token.endpoint.url", "Where tokens are got."),
        ("broker.address.family", "Addresses that are used: any, v4 or v6."),
        ("broker.address.ttl", "Milliseconds for which a broker's address is remembered."),
        ("socket.keepalive.enable", "Whether idle connections are kept alive."),
        ("socket.timeout.ms", "Milliseconds for which a request waits for its answer."),
        ("socket.connection.setup.timeout.ms", "Milliseconds for which a connection may take to be made."),
        ("connections.max.idle.ms", "Milliseconds after which an idle connection is closed; 0 for never."),
        ("reconnect.backoff.ms", "Milliseconds before a lost connection is made again, doubled each time."),
        ("reconnect.backoff.max.ms", "Most milliseconds before a lost connection is made again."),
        ("retry.backoff.ms", "Milliseconds before a refused request is sent again."),
        ("heartbeat.interval.ms", "Milliseconds between two signs of life of a group's member."),
        ("max.poll.interval.ms", "Milliseconds for which workers of revoked partitions may take to end."),
        ("fetch.wait.max.ms", "Milliseconds for which a broker holds an empty answer."),
        ("batch.size", "Size of the largest batch, in bytes."),
        ("debug", "Parts of librdkafka whose work is logged, at level debug and trace."),
    ]

    private static let secrets: [(name: String, about: String)] = [
        ("sasl.password", "Password, for PLAIN and SCRAM."),
        ("sasl.oauthbearer.client.secret", "This process's secret at the token's issuer."),
        ("ssl.key.password", "Password of the private key."),
        ("ssl.keystore.password", "Password of the PKCS#12 file."),
    ]

    private static let textKeys: [(name: String, key: ConfigurationKey<String?>)] = texts.map {
        ($0.name, ConfigurationKey(optional: $0.name, .string(lengths: 1...4096), $0.about))
    }

    private static let secretKeys: [(name: String, key: ConfigurationKey<Secret?>)] = secrets.map {
        ($0.name, ConfigurationKey(optional: $0.name, .secret(), $0.about))
    }

    private static let others = ConfigurationKey(
        "properties", .list(), default: [], "Any further properties of librdkafka, each as name=value; no secrets.")

    static let keys: [any DeclaredConfigurationKey] =
        textKeys.map(\.key) as [any DeclaredConfigurationKey] + secretKeys.map(\.key) + [others]

    /// The properties that are set, each with its key for errors.
    static func read(
        from reader: ConfigurationReader
    ) throws(ConfigurationProblem) -> [(key: any DeclaredConfigurationKey, property: KafkaProperty)] {
        var found: [(key: any DeclaredConfigurationKey, property: KafkaProperty)] = []
        for (name, key) in textKeys {
            if let value = try reader.read(key) { found.append((key, KafkaProperty(name, Secret(value)))) }
        }
        for (name, key) in secretKeys {
            if let value = try reader.read(key) { found.append((key, KafkaProperty(name, value, isSecret: true))) }
        }
        for text in try reader.read(others) {
            let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            // Errors do not show the text, which may be a secret.
            guard parts.count == 2 else { throw reader.problem(with: others, "has a property that is not name=value") }
            let name = String(parts[0])
            if secrets.contains(where: { $0.name == name }) || name.hasSuffix(".pem") {
                throw reader.problem(with: others, "\(name) is a secret: use its own key, or a file")
            }
            found.append((others, KafkaProperty(name, Secret(String(parts[1])), isSecret: true)))
        }
        return found
    }
}

/// The properties of librdkafka that cannot be set, each with the reason.
enum FixedProperty {
    private static let guarantee = "it could lose, repeat or reorder acknowledged changes"
    private static let ownKey = "a setting of Weir determines it"
    private static let group = "Weir manages groups and offsets"
    private static let events = "Weir handles librdkafka's events itself"

    private static let reasons: [String: String] = [
        "enable.idempotence": guarantee, "acks": guarantee, "request.required.acks": guarantee,
        "enable.gapless.guarantee": guarantee, "message.timeout.ms": guarantee, "delivery.timeout.ms": guarantee,
        "max.in.flight": guarantee, "max.in.flight.requests.per.connection": guarantee, "retries": guarantee,
        "message.send.max.retries": guarantee, "transactional.id": guarantee, "transaction.timeout.ms": guarantee,
        "queuing.strategy": guarantee, "delivery.report.only.error": guarantee, "produce.offset.report": guarantee,
        "partitioner": guarantee, "auto.offset.reset": guarantee, "check.crcs": guarantee, "isolation.level": guarantee,
        "allow.auto.create.topics": guarantee, "topic.blacklist": guarantee,

        "bootstrap.servers": ownKey, "metadata.broker.list": ownKey, "linger.ms": ownKey,
        "queue.buffering.max.ms": ownKey, "queue.buffering.max.kbytes": ownKey, "queue.buffering.max.messages": ownKey,
        "compression.codec": ownKey, "compression.type": ownKey, "message.max.bytes": ownKey,
        "receive.message.max.bytes": ownKey, "queued.max.messages.kbytes": ownKey, "queued.min.messages": ownKey,
        "fetch.max.bytes": ownKey, "fetch.message.max.bytes": ownKey, "max.partition.fetch.bytes": ownKey,

        "group.id": group, "group.instance.id": group, "partition.assignment.strategy": group,
        "session.timeout.ms": ownKey, "group.protocol.type": group, "enable.auto.commit": group,
        "auto.commit.enable": group, "auto.commit.interval.ms": group, "enable.auto.offset.store": group,
        "offset.store.method": group, "offset.store.path": group, "offset.store.sync.interval.ms": group,
        "enable.partition.eof": group,

        "log.queue": events, "log_level": events, "enabled_events": events, "statistics.interval.ms": events,
        "internal.termination.signal": events, "consume.callback.max.messages": events,
        "test.mock.num.brokers": events,
    ]

    /// Why a property cannot be set; `nil` if it can.
    static func reason(_ name: String) -> String? { reasons[name] }
}
