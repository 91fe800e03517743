/// The properties of librdkafka that have a key of their own.
enum PassedProperty {
    static let texts: [(name: String, about: String)] = [
        ("client.id", "Name of this process in the brokers' logs and quotas; weir where not set."),
        ("client.rack", "Rack of this process, for reading from the nearest copy."),
        ("security.protocol", "Protocol to the brokers: plaintext, ssl, sasl_plaintext or sasl_ssl."),
        ("ssl.ca.location", "File or folder of the CA certificates for the brokers' certificates."),
        ("ssl.certificate.location", "File of this process's certificate (PEM)."),
        ("ssl.key.location", "File of this process's private key (PEM)."),
        ("ssl.keystore.location", "File of this process's key and certificate (PKCS#12)."),
        ("ssl.crl.location", "File of revoked certificates."),
        ("ssl.cipher.suites", "Ciphers that are allowed."),
        ("ssl.curves.list", "Curves that are allowed."),
        ("ssl.sigalgs.list", "Signature algorithms that are allowed."),
        ("ssl.endpoint.identification.algorithm", "How a broker's host name is verified: https, or none."),
        ("enable.ssl.certificate.verification", "Whether the brokers' certificates are verified."),
        ("sasl.mechanism", "Authentication mechanism: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, GSSAPI, OAUTHBEARER."),
        ("sasl.username", "User name, for PLAIN and SCRAM."),
        ("sasl.kerberos.service.name", "Kerberos principal name of the brokers."),
        ("sasl.kerberos.principal", "Kerberos principal name of this process."),
        ("sasl.kerberos.keytab", "Kerberos keytab file."),
        ("sasl.kerberos.kinit.cmd", "Command that renews the Kerberos ticket."),
        ("sasl.kerberos.min.time.before.relogin", "Milliseconds between two renewals."),
        ("sasl.oauthbearer.method", "Method for OAuth tokens: oidc, or default."),
        ("sasl.oauthbearer.client.id", "Client id at the token issuer."),
        ("sasl.oauthbearer.scope", "Scope of the token."),
        ("sasl.oauthbearer.extensions", "SASL extensions for the broker, as name=value."),
        ("sasl.oauthbearer.token.endpoint.url", "URL of the token endpoint."),
        ("broker.address.family", "Addresses that are used: any, v4 or v6."),
        ("broker.address.ttl", "Milliseconds for which a broker's address is cached."),
        ("socket.keepalive.enable", "Whether idle connections are kept alive."),
        ("socket.timeout.ms", "Milliseconds for which a request waits for its response."),
        ("socket.connection.setup.timeout.ms", "Milliseconds that a connection attempt may take."),
        ("connections.max.idle.ms", "Milliseconds after which an idle connection is closed; 0 for never."),
        ("reconnect.backoff.ms", "Milliseconds before a reconnect, doubled each time."),
        ("reconnect.backoff.max.ms", "Most milliseconds before a reconnect."),
        ("retry.backoff.ms", "Milliseconds before a failed request is retried."),
        ("heartbeat.interval.ms", "Milliseconds between two heartbeats of a group member."),
        ("max.poll.interval.ms", "Milliseconds without a poll after which a group member leaves."),
        ("fetch.wait.max.ms", "Milliseconds for which a broker delays an empty fetch response."),
        ("batch.size", "Size of the largest batch, in bytes."),
        ("debug", "Debug contexts of librdkafka to log, at level debug and trace."),
    ]

    static let secrets: [(name: String, about: String)] = [
        ("sasl.password", "Password, for PLAIN and SCRAM."),
        ("sasl.oauthbearer.client.secret", "Client secret at the token issuer."),
        ("ssl.key.password", "Password of the private key."),
        ("ssl.keystore.password", "Password of the PKCS#12 file."),
    ]
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

        "group.id": group, "group.instance.id": ownKey, "partition.assignment.strategy": group,
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
