import Configuration

/// The settings of the embedded tables; the executable scopes them with `store.` and names the file.
extension SQLiteRecordStoreConfiguration: ConfigurationComponent {
    private static let defaults = SQLiteRecordStoreConfiguration(path: "tables.db")

    static let readerThreadsKey = ConfigurationKey(
        "reader-threads", .integer(in: 1...64), default: defaults.readerThreads, "Threads that look rows up.")
    static let cacheBytesKey = ConfigurationKey(
        "cache-bytes", .byteSize(in: 1024...(1 << 40)), default: defaults.cacheBytes,
        "Memory for pages of the writing connection; each reading one gets a quarter.")
    static let checkpointPagesKey = ConfigurationKey(
        "checkpoint-pages", .integer(in: 100...1_000_000), default: defaults.checkpointPages,
        "Length of the write-ahead log, in pages of 4 KiB, from which a commit moves it into the file.")

    /// Every key.
    package static let keys: [any DeclaredConfigurationKey] = [
        readerThreadsKey, cacheBytesKey, checkpointPagesKey,
    ]

    /// Reads the settings; the file is the executable's to set.
    package init(from reader: ConfigurationReader) throws(ConfigurationProblem) {
        self.init(
            path: "tables.db", readerThreads: try reader.read(Self.readerThreadsKey),
            cacheBytes: try reader.read(Self.cacheBytesKey),
            checkpointPages: try reader.read(Self.checkpointPagesKey))
    }
}
