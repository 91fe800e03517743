import Configuration
import Kafka

/// How batches are compressed, in transit and in the log.
package enum KafkaCompression: String, Sendable, Hashable, CaseIterable {
    case none
    /// Fast, about half the size of JSON.
    case lz4
    /// Smaller, for more work.
    case zstd
}

/// A property that is passed on to librdkafka.
package struct KafkaProperty: Sendable {
    package let name: String
    package let value: Secret
    package let isSecret: Bool

    package init(_ name: String, _ value: Secret, isSecret: Bool = false) {
        self.name = name
        self.value = value
        self.isSecret = isSecret
    }
}

/// The settings of a log in Kafka; the executable scopes them with `kafka.`.
///
/// What Weir's guarantees depend on has no key: producers are idempotent and gapless with `acks=all`, and no message times
/// out.
package struct KafkaChangeLogConfiguration: ConfigurationComponent {
    package var servers: [String] = []
    package var topicPrefix = ""
    package var maximumRecordSize = 32 << 20
    package var queueBytes = 32 << 20
    package var fetchBytes = 16 << 20
    package var lingerMilliseconds = 0
    package var compression = KafkaCompression.lz4
    /// See ``KafkaChangeLog/removeRecords(of:before:floors:consumers:)``.
    package var keep: Duration = .seconds(7 * 86_400)
    package var closeTimeout: Duration = .seconds(10)
    package var sessionTimeout: Duration = .seconds(6)
    /// `nil` for a process that is unknown to its groups after a restart.
    package var instanceName: String?
    package var checkInterval: Duration = .seconds(5)
    /// Whether a time that the producer set is accepted as the log's, which the mock cluster of tests needs.
    package var acceptsProducersTime = false

    /// Further properties of librdkafka's clients.
    package private(set) var properties: [KafkaProperty] = []
    // The properties as they were set, until they are validated.
    private var texts: [String: String] = [:]
    private var secrets: [String: Secret] = [:]
    private var others: [String] = []

    package init() {}

    package init(servers: [String], topicPrefix: String = "") {
        self.servers = servers
        self.topicPrefix = topicPrefix
    }

    package static var settings: [Setting<Self>] {
        Setting(
            required: "servers", \.servers, .list(counts: 1...100),
            "Bootstrap brokers, each as host:port.")
        Setting(
            "topic-prefix", \.topicPrefix, .string(lengths: 0...200),
            "Prefix of the names of topics and groups, for a cluster that is shared with others.")
        Setting(
            "max-record-bytes", \.maximumRecordSize, .byteSize(in: (1 << 20)...(256 << 20)),
            "Size of the largest record, key and value together; the topics must allow it.")
        Setting(
            "queue-bytes", \.queueBytes, .byteSize(in: (1 << 20)...(1 << 30)),
            "Size of the records of a producer that may wait for the brokers before its callers wait.")
        Setting(
            "fetch-bytes", \.fetchBytes, .byteSize(in: (1 << 20)...(1 << 30)),
            "Size of the records of a topic that are fetched ahead of their readers.")
        Setting(
            "linger-ms", \.lingerMilliseconds, .integer(in: 0...1),
            "Milliseconds for which a record waits for others to share its batch.")
        Setting("compression", \.compression, .choice(KafkaCompression.self), "How batches are compressed.")
        Setting(
            "keep", \.keep, .duration(in: .seconds(60)...(.seconds(315_360_000))),
            "How long uploads, results and dead letters are kept; uploads not yet processed are kept in any case.")
        Setting(
            "close-timeout", \.closeTimeout, .duration(in: .milliseconds(1)...(.seconds(600))),
            "How long a stopping process waits for the brokers to acknowledge what is enqueued.")
        Setting(
            "session-timeout", \.sessionTimeout, .duration(in: .seconds(1)...(.seconds(300))),
            "How long a process may be silent, or its workers of revoked partitions may continue, before others get the partitions."
        )
        Setting(
            optional: "instance-name", \.instanceName, .string(lengths: 1...249),
            "Name of this process, unique in its role and kept when it restarts: it then gets its partitions back at once."
        )
        Setting(
            "check-interval", \.checkInterval, .duration(in: .milliseconds(100)...(.seconds(600))),
            "How often a process checks that the topics still have its epoch and all their records.")
        PassedProperty.texts.map { name, about in
            Setting(optional: name, \.texts[name], .string(lengths: 1...4096), about)
        }
        PassedProperty.secrets.map { name, about in Setting(optional: name, \.secrets[name], .secret(), about) }
        Setting(
            "properties", \.others, .list(),
            "Other properties of librdkafka, each as name=value; no secrets.")
    }

    /// Includes librdkafka's own check of the properties that are passed on.
    package mutating func validate(_ context: ValidationContext<Self>) throws(ConfigurationProblem) {
        guard Self.isName(topicPrefix) else {
            throw context.problem(with: \.topicPrefix, "has other characters than letters, digits, '.', '_' and '-'")
        }
        if let instanceName, !Self.isName(instanceName) || [".", ".."].contains(instanceName) {
            throw context.problem(
                with: \.instanceName, "is '.' or '..', or has other characters than letters, digits, '.', '_' and '-'")
        }
        var found: [(key: PartialKeyPath<Self>, property: KafkaProperty)] = []
        for (name, _) in PassedProperty.texts {
            if let value = texts[name] { found.append((\.texts[name], KafkaProperty(name, Secret(value)))) }
        }
        for (name, _) in PassedProperty.secrets {
            if let value = secrets[name] { found.append((\.secrets[name], KafkaProperty(name, value, isSecret: true))) }
        }
        for text in others {
            let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            // The text is not repeated: it may be a secret all the same.
            guard parts.count == 2 else {
                throw context.problem(with: \.others, "has a property that is not name=value")
            }
            let name = String(parts[0])
            if PassedProperty.secrets.contains(where: { $0.name == name }) || name.hasSuffix(".pem") {
                throw context.problem(with: \.others, "\(name) is a secret: use its own key, or a file")
            }
            found.append((\.others, KafkaProperty(name, Secret(String(parts[1])), isSecret: true)))
        }
        for (key, property) in found {
            do throws(KafkaError) {
                try pass(property)
            } catch {
                throw context.problem(with: key, error.message)
            }
        }
        // Those in `properties` are shown nowhere.
        (texts, secrets, others) = ([:], [:], [])
    }

    /// Whether a text has only characters that Kafka allows in names.
    private static func isName(_ text: String) -> Bool {
        text.utf8.allSatisfy {
            (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0 | 0x20)
                || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) || "._-".utf8.contains($0)
        }
    }

    /// Passes a property on to librdkafka.
    ///
    /// - Throws: where Weir sets the property itself, or librdkafka refuses it.
    package mutating func pass(_ property: KafkaProperty) throws(KafkaError) {
        if let reason = FixedProperty.reason(property.name) {
            throw KafkaError(.invalidArgument, message: "\(property.name) cannot be set: \(reason)")
        }
        var alone = KafkaProperties()
        alone.set(property.name, property.value.reveal(), isSecret: property.isSecret)
        try alone.check()
        properties.append(property)
    }
}
