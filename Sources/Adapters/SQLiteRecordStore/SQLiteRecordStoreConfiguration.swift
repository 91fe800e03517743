import Configuration

/// The settings of the embedded tables, which are one SQLite file; the executable scopes them with `store.` and names the
/// file.
package struct SQLiteRecordStoreConfiguration: ConfigurationComponent {
    /// The file; its folder must exist.
    ///
    /// SQLite keeps two more beside it, whose names end with `-wal` and `-shm`.
    package var path = "tables.db"
    /// Each has a connection of its own.
    package var readerThreads = 2
    package var cacheBytes = 16 << 20
    /// A longer write-ahead log writes pages that change often less often, and takes that much more of the disk.
    ///
    /// It may grow beyond this while a snapshot is being read.
    package var checkpointPages = 16_000
    /// How large the file may grow in bytes, its write-ahead log not counted; `nil`: as large as the disk.
    ///
    /// What would need more is refused as `storageFull`.
    package var maximumBytes: Int?
    /// How long a call waits for another process that holds the file.
    package var busyTimeoutMilliseconds = 5000

    package init() {}

    package init(path: String) { self.path = path }

    package static var settings: [Setting<Self>] {
        Setting("reader-threads", \.readerThreads, .integer(in: 1...64), "Threads that look rows up.")
        Setting(
            "cache-bytes", \.cacheBytes, .byteSize(in: 1024...(1 << 40)),
            "Memory for pages of the writing connection; each reading one gets a quarter.")
        Setting(
            "checkpoint-pages", \.checkpointPages, .integer(in: 100...1_000_000),
            "Length of the write-ahead log, in pages of 4 KiB, from which a commit moves it into the file.")
    }

    /// The size of a page, which a file keeps permanently: rows change all over it, and each changed page is written whole.
    static let pageSize = 4096
}
