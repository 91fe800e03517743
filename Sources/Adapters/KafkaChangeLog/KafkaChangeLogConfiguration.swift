import Configuration
import Kafka

/// How batches are compressed on their way and in the log.
package enum KafkaCompression: String, Sendable, Hashable, CaseIterable {
    /// Not at all.
    case none
    /// Fast, about half the size of JSON.
    case lz4
    /// Smaller, for more work.
    case zstd
}

/// A property that is passed on to librdkafka.
package struct KafkaProperty: Sendable {
    /// librdkafka's name.
    package let name: String
    /// The value.
    package let value: Secret
    /// Whether the value is never shown.
    package let isSecret: Bool

    /// Sets a property.
    package init(_ name: String, _ value: Secret, isSecret: Bool = false) {
        self.name = name
        self.value = value
        self.isSecret = isSecret
    }
}

/// The settings of a log in Kafka; the executable scopes them with `kafka.`.
///
/// What Weir's promises hang on has no key: producers are idempotent and gapless with `acks=all`, and no message times out.
package struct KafkaChangeLogConfiguration: ConfigurationComponent {
    static let servers = ConfigurationKey(
        required: "servers", .list(counts: 1...100),
        "Brokers to begin with, each as host:port; the others are learned from them.")
    static let topicPrefix = ConfigurationKey(
        "topic-prefix", .string(lengths: 0...200), default: "",
        "Put before the names of topics and groups, for a cluster that others use, too.")
    static let maximumRecordSize = ConfigurationKey(
        "max-record-bytes", .byteSize(in: (1 << 20)...(256 << 20)), default: 32 << 20,
        "Size of the largest record, key and value together; the topics must allow it.")
    static let queueBytes = ConfigurationKey(
        "queue-bytes", .byteSize(in: (1 << 20)...(1 << 30)), default: 32 << 20,
        "Size of the records of a producer that may wait for the brokers before its callers wait.")
    static let fetchBytes = ConfigurationKey(
        "fetch-bytes", .byteSize(in: (1 << 20)...(1 << 30)), default: 16 << 20,
        "Size of the records of a topic that are fetched ahead of their readers.")
    static let linger = ConfigurationKey(
        "linger-ms", .integer(in: 0...1), default: 0,
        "Milliseconds for which a record waits for others to share its batch.")
    static let compression = ConfigurationKey(
        "compression", .choice(KafkaCompression.self), default: .lz4, "How batches are compressed.")
    static let keep = ConfigurationKey(
        "keep", .duration(in: .seconds(60)...(.seconds(315_360_000))), default: .seconds(7 * 86_400),
        "How long uploads, results and dead letters are kept; uploads not yet worked on are kept all the same.")
    static let closeTimeout = ConfigurationKey(
        "close-timeout", .duration(in: .milliseconds(1)...(.seconds(600))), default: .seconds(10),
        "How long a stopping process waits for the brokers to take what is enqueued.")
    static let sessionTimeout = ConfigurationKey(
        "session-timeout", .duration(in: .seconds(1)...(.seconds(300))), default: .seconds(10),
        "How long a worker may be silent before others get its partitions; the brokers say how short it may be.")

    static let checkInterval = ConfigurationKey(
        "check-interval", .duration(in: .milliseconds(100)...(.seconds(600))), default: .seconds(5),
        "How often a process looks whether the topics still hold its history and all that they held.")

    /// Every key.
    package static let keys: [any DeclaredConfigurationKey] =
        [
            servers, topicPrefix, maximumRecordSize, queueBytes, fetchBytes, linger, compression, keep, closeTimeout,
            sessionTimeout, checkInterval,
        ] + PassedProperty.keys

    /// Brokers to begin with, each as `host:port`.
    package var servers: [String]
    /// Put before the names of topics and groups.
    package var topicPrefix: String
    /// The largest record, key and value together, in bytes.
    package var maximumRecordSize: Int
    /// How many bytes of a producer's records may wait for the brokers before its callers wait.
    package var queueBytes: Int
    /// How many bytes of a topic's records are fetched ahead of their readers.
    package var fetchBytes: Int
    /// For how many milliseconds a record waits for others to share its batch, 0 or 1.
    package var lingerMilliseconds: Int
    /// How batches are compressed.
    package var compression: KafkaCompression
    /// How long records of the topics that are not kept for ever are kept, for whoever calls
    /// ``KafkaChangeLog/removeRecords(of:before:floors:)``.
    package var keep: Duration
    /// How long a log that is closed waits for the brokers to take what is enqueued.
    package var closeTimeout: Duration
    /// Further properties of librdkafka's clients.
    package private(set) var properties: [KafkaProperty] = []

    /// How long the coordinator waits for a sign of a member's life before others get its partitions.
    package var sessionTimeout: Duration
    /// How often a process looks whether the topics are still those of its history.
    package var checkInterval: Duration
    /// Whether a time that the producer gave is taken for the log's, which the mock cluster of tests needs.
    package var acceptsProducersTime = false

    /// Makes settings.
    package init(
        servers: [String], topicPrefix: String = "", maximumRecordSize: Int = 32 << 20, queueBytes: Int = 32 << 20,
        fetchBytes: Int = 16 << 20, lingerMilliseconds: Int = 0, compression: KafkaCompression = .lz4,
        keep: Duration = .seconds(7 * 86_400), closeTimeout: Duration = .seconds(10),
        sessionTimeout: Duration = .seconds(10), checkInterval: Duration = .seconds(5)
    ) {
        self.servers = servers
        self.topicPrefix = topicPrefix
        self.maximumRecordSize = maximumRecordSize
        self.queueBytes = queueBytes
        self.fetchBytes = fetchBytes
        self.lingerMilliseconds = lingerMilliseconds
        self.compression = compression
        self.keep = keep
        self.closeTimeout = closeTimeout
        self.sessionTimeout = sessionTimeout
        self.checkInterval = checkInterval
    }

    /// Reads the settings, with librdkafka's judgement of the properties that are passed on.
    package init(from reader: ConfigurationReader) throws(ConfigurationProblem) {
        self.init(
            servers: try reader.read(Self.servers), topicPrefix: try reader.read(Self.topicPrefix),
            maximumRecordSize: try reader.read(Self.maximumRecordSize), queueBytes: try reader.read(Self.queueBytes),
            fetchBytes: try reader.read(Self.fetchBytes), lingerMilliseconds: try reader.read(Self.linger),
            compression: try reader.read(Self.compression), keep: try reader.read(Self.keep),
            closeTimeout: try reader.read(Self.closeTimeout), sessionTimeout: try reader.read(Self.sessionTimeout),
            checkInterval: try reader.read(Self.checkInterval))
        let isFit = topicPrefix.utf8.allSatisfy {
            (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0 | 0x20)
                || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) || "._-".utf8.contains($0)
        }
        guard isFit else {
            throw reader.problem(with: Self.topicPrefix, "has other characters than letters, digits, '.', '_' and '-'")
        }
        for (key, property) in try PassedProperty.read(from: reader) {
            do throws(KafkaError) {
                try pass(property)
            } catch {
                throw reader.problem(with: key, error.message)
            }
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
