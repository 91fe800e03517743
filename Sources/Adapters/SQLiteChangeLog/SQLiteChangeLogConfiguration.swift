import Configuration

/// The settings of a log in one SQLite file; the executable scopes them with `changelog.` and names the file.
package struct SQLiteChangeLogConfiguration: ConfigurationComponent {
    private static let defaults = SQLiteChangeLogConfiguration(path: "log.db")

    static let maximumRecordSize = ConfigurationKey(
        "max-record-bytes", .byteSize(in: (1 << 20)...(512 << 20)), default: defaults.maximumRecordSize,
        "Size of the largest record, key and value together.")
    static let queueBytes = ConfigurationKey(
        "queue-bytes", .byteSize(in: (1 << 20)...(1 << 32)), default: defaults.queueBytes,
        "Size of the records that may wait to be written before producers wait.")
    static let tailBytes = ConfigurationKey(
        "tail-bytes", .byteSize(in: 0...(1 << 32)), default: defaults.tailBytes,
        "Size of each partition's newest records that are kept in memory for readers.")
    static let readerThreads = ConfigurationKey(
        "reader-threads", .integer(in: 1...64), default: defaults.readerThreads, "Threads that read older records.")
    static let keep = ConfigurationKey(
        "keep", .duration(in: .seconds(60)...(.seconds(315_360_000))), default: defaults.keep,
        "How long uploads, results and dead letters are kept; uploads not yet worked on are kept all the same.")
    static let reserveBytes = ConfigurationKey(
        "reserve-bytes", .byteSize(in: 0...(1 << 40)), default: 512 << 20,
        "Free room on the disk that uploads must leave, for ordering and storing what was acknowledged; 0 for none.")

    /// Every key.
    package static let keys: [any DeclaredConfigurationKey] = [
        maximumRecordSize, queueBytes, tailBytes, readerThreads, keep, reserveBytes,
    ]

    /// How many partitions a topic may have: each is a table of its own.
    package static let partitionRange = 1...1024

    /// The file; its folder must exist.
    package var path: String
    /// How many partitions a new log gets for each topic but `control`; an existing one keeps its number.
    package var partitions: Int
    /// The largest record, key and value together, in bytes.
    package var maximumRecordSize: Int
    /// How many bytes of records may wait to be written before producers wait.
    package var queueBytes: Int
    /// How many bytes of each partition's newest records are kept in memory for readers.
    package var tailBytes: Int
    /// How many threads read older records.
    package var readerThreads: Int
    /// How long records of the topics that are not kept for ever are kept.
    package var keep: Duration
    /// How many bytes of the disk uploads leave free for everything behind them: beyond that they fail as `storageFull`;
    /// 0 for none.
    package var reserveBytes: Int
    /// How large the file may become before appends fail as `storageFull`; `nil`: as the disk has room.
    ///
    /// The write-ahead log, some megabytes, comes on top.
    package var maximumFileBytes: Int?

    /// Makes settings.
    package init(
        path: String, partitions: Int = 4, maximumRecordSize: Int = 64 << 20, queueBytes: Int = 32 << 20,
        tailBytes: Int = 1 << 20, readerThreads: Int = 2, keep: Duration = .seconds(7 * 86_400),
        reserveBytes: Int = 0, maximumFileBytes: Int? = nil
    ) {
        self.path = path
        self.partitions = partitions
        self.maximumRecordSize = maximumRecordSize
        self.queueBytes = queueBytes
        self.tailBytes = tailBytes
        self.readerThreads = readerThreads
        self.keep = keep
        self.reserveBytes = reserveBytes
        self.maximumFileBytes = maximumFileBytes
    }

    /// Reads the settings; file and partitions are the executable's to set.
    package init(from reader: ConfigurationReader) throws(ConfigurationProblem) {
        self.init(
            path: "log.db", maximumRecordSize: try reader.read(Self.maximumRecordSize),
            queueBytes: try reader.read(Self.queueBytes), tailBytes: try reader.read(Self.tailBytes),
            readerThreads: try reader.read(Self.readerThreads), keep: try reader.read(Self.keep),
            reserveBytes: try reader.read(Self.reserveBytes))
    }
}
