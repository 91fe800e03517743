import Configuration

/// The settings of a log in one SQLite file; the executable scopes them with `changelog.` and names the file.
package struct SQLiteChangeLogConfiguration: ConfigurationComponent {
    /// How many partitions a topic may have: each is a table of its own.
    package static let partitionRange = 1...1024

    /// The file; its folder must exist.
    package var path = "log.db"
    /// How many partitions an empty log gets for each topic but `control`; one with records keeps its number.
    package var partitions = 4
    package var maximumRecordSize = 64 << 20
    package var queueBytes = 32 << 20
    package var tailBytes = 1 << 20
    package var readerThreads = 2
    package var keep: Duration = .seconds(7 * 86_400)
    /// Uploads that would leave less fail as `storageFull`.
    package var reserveBytes = 512 << 20
    /// How large the file may become before appends fail as `storageFull`; `nil`: as large as the disk.
    ///
    /// The write-ahead log, some megabytes, is not counted.
    package var maximumFileBytes: Int?

    package init() {}

    /// A log without a reserve on its disk.
    package init(path: String) {
        self.path = path
        reserveBytes = 0
    }

    package static var settings: [Setting<Self>] {
        Setting(
            "max-record-bytes", \.maximumRecordSize, .byteSize(in: (1 << 20)...(512 << 20)),
            "Size of the largest record, key and value together.")
        Setting(
            "queue-bytes", \.queueBytes, .byteSize(in: (1 << 20)...(1 << 32)),
            "Size of the records that may wait to be written before producers wait.")
        Setting(
            "tail-bytes", \.tailBytes, .byteSize(in: 0...(1 << 32)),
            "Size of each partition's newest records that are kept in memory for readers.")
        Setting("reader-threads", \.readerThreads, .integer(in: 1...64), "Threads that read older records.")
        Setting(
            "keep", \.keep, .duration(in: .seconds(60)...(.seconds(315_360_000))),
            "How long uploads, results and dead letters are kept; uploads not yet processed are kept in any case.")
        Setting(
            "reserve-bytes", \.reserveBytes, .byteSize(in: 0...(1 << 40)),
            "Free space on the disk that uploads must leave for processing what was acknowledged; 0 for none."
        )
    }
}
