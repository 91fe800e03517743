/// The settings of tables in one SQLite file.
package struct SQLiteRecordStoreConfiguration: Sendable {
    /// The file; its folder must exist.
    ///
    /// SQLite keeps two more beside it, with `-wal` and `-shm` behind its name.
    package var path: String
    /// How many threads look rows up, each with a connection of its own; at least 1.
    package var readerThreads: Int
    /// The memory for pages of the writing connection in bytes, at least 1 KiB; each reading one gets a quarter.
    package var cacheBytes: Int
    /// The length of the write-ahead log in pages of 4 KiB from which a commit moves it into the file.
    ///
    /// A longer one writes pages that change often less often, and takes that much more of the disk. A snapshot that is
    /// being read holds the log back, so that it may grow beyond this.
    package var checkpointPages: Int
    /// How large the file may grow in bytes, its write-ahead log not counted; `nil`: as large as the disk.
    ///
    /// What would need more is refused as `storageFull`.
    package var maximumBytes: Int?
    /// How long a call waits for another process that holds the file, in milliseconds.
    package var busyTimeoutMilliseconds: Int

    /// Makes settings.
    package init(
        path: String, readerThreads: Int = 2, cacheBytes: Int = 16 << 20, checkpointPages: Int = 16_000,
        maximumBytes: Int? = nil, busyTimeoutMilliseconds: Int = 5000
    ) {
        self.path = path
        self.readerThreads = readerThreads
        self.cacheBytes = cacheBytes
        self.checkpointPages = checkpointPages
        self.maximumBytes = maximumBytes
        self.busyTimeoutMilliseconds = busyTimeoutMilliseconds
    }

    /// The size of a page, for ever that of the file: rows change all over it, and each changed page is written whole.
    static let pageSize = 4096
}
