import Configuration
import Control
import SyncModel

/// What the whole process needs: where its data lies, and what a new history is made with.
struct PipelineConfiguration: ConfigurationComponent {
    static let data = ConfigurationKey(
        "data", .path, default: "weir-data", "Folder of the log, the tables and the streams; made when missing.")
    static let schema = ConfigurationKey(required: "schema", .path, "The schema file: the tables that devices sync.")
    static let storage = ConfigurationKey(
        "storage", .choice(Storage.self), default: .embedded,
        "Where weir run keeps log and tables: in files of the data folder, or in a cluster's Kafka and Postgres.")
    static let partitions = ConfigurationKey(
        optional: "partitions", .integer(in: 1...1024),
        "Partitions of a new history, for ever: an owner lives in one; without it 4 in files, 64 in Kafka.")
    static let clock = ConfigurationKey(
        "clock", .timeStampClock, default: .logTime,
        "How timeStamps grow in a new history: with the log's time, or by one from a number on.")
    static let pieceBytes = ConfigurationKey(
        "piece-bytes", .byteSize(in: 1024...(16 << 20)), default: 512 << 10,
        "Size at which a new history cuts a batch's result into several records.")
    static let authentication = ConfigurationKey(
        "auth", .choice(Authentication.self), default: .none,
        "How callers are known; none believes the header X-Sync-Id, on loopback only.")

    static let keys: [any DeclaredConfigurationKey] = [
        data, schema, storage, partitions, clock, pieceBytes, authentication,
    ]

    /// Where log and tables are.
    enum Storage: String, Sendable, CaseIterable {
        case embedded, cluster
    }

    /// The ways in which callers are known.
    enum Authentication: String, Sendable, CaseIterable {
        case none
    }

    let data: String
    let schema: String
    let storage: Storage
    let partitions: Int?
    let clock: TimeStampClock
    let pieceBytes: Int
    let authentication: Authentication

    init(from reader: ConfigurationReader) throws(ConfigurationProblem) {
        data = try reader.read(Self.data)
        schema = try reader.read(Self.schema)
        storage = try reader.read(Self.storage)
        partitions = try reader.read(Self.partitions)
        clock = try reader.read(Self.clock)
        pieceBytes = try reader.read(Self.pieceBytes)
        authentication = try reader.read(Self.authentication)
    }
}

/// What a batch may hold, for the gateway and ingest alike.
struct LimitsConfiguration: ConfigurationComponent {
    static let maxBatchBytes = ConfigurationKey(
        "max-batch-bytes", .byteSize(in: 1024...(16 << 20)), default: SyncLimits().maxBatchBytes,
        "Size of a whole request, decompressed.")
    static let maxChanges = ConfigurationKey(
        "max-changes", .integer(in: 1...100_000), default: SyncLimits().maxChanges, "Changes of a batch.")
    static let maxValueBytes = ConfigurationKey(
        "max-value-bytes", .byteSize(in: 16...(16 << 20)), default: SyncLimits().maxValueBytes,
        "Size of a value's canonical JSON.")

    static let keys: [any DeclaredConfigurationKey] = [maxBatchBytes, maxChanges, maxValueBytes]

    let limits: SyncLimits

    init(from reader: ConfigurationReader) throws(ConfigurationProblem) {
        limits = SyncLimits(
            maxBatchBytes: try reader.read(Self.maxBatchBytes), maxChanges: try reader.read(Self.maxChanges),
            maxValueBytes: try reader.read(Self.maxValueBytes))
    }
}

extension ConfigurationType where Value == TimeStampClock {
    /// `log-time` or `sequence(N)`.
    static var timeStampClock: ConfigurationType {
        ConfigurationType(
            placeholder: "CLOCK", expected: "log-time, or sequence(N) with N from 1 to 2^53-1",
            parse: { text in
                guard let text = text.one else { return nil }
                if text.utf8.elementsEqual("log-time".utf8) { return .logTime }
                guard text.hasPrefix("sequence("), text.hasSuffix(")"),
                    let first = Int64(text.dropFirst(9).dropLast()), first >= 1, TimeStamp(rawValue: first) != nil
                else { return nil }
                return .sequence(first: first)
            },
            render: { $0.name })
    }
}
