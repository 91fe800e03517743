import Configuration

/// The settings of the fan-out; the executable scopes them with `fanout.` and names the folder.
extension FanOutConfiguration: ConfigurationComponent {
    private static let defaults = FanOutConfiguration(directory: ".")

    static let partitions = ConfigurationKey(
        "partitions", .servedPartitions, default: defaults.partitions,
        "Partitions whose streams this process serves; more than one fan-out may serve the same.")
    static let check = ConfigurationKey(
        "check", .choice(Check.self), default: defaults.check,
        "What is looked at when a stream is opened: heads, or full (about a second for a gigabyte).")
    static let batchBytes = ConfigurationKey(
        "batch-bytes", .byteSize(in: 1024...(64 << 20)), default: defaults.batchBytes,
        "Size of the results that become one transaction of a stream.")
    static let readerThreads = ConfigurationKey(
        "reader-threads", .integer(in: 1...256), default: defaults.readerThreads,
        "Threads that read pulls from the streams.")
    static let maximumReads = ConfigurationKey(
        "max-reads", .integer(in: 1...1_000_000), default: defaults.maximumReads,
        "Reads under way or in line; more are answered not_ready.")
    static let maximumWaiters = ConfigurationKey(
        "max-waiters", .integer(in: 1...1_000_000), default: defaults.maximumWaiters,
        "Callers of a partition that may wait for outcomes; more are answered not_ready.")
    static let recentResults = ConfigurationKey(
        "recent-results", .integer(in: 1...10_000_000), default: defaults.recentResults,
        "Results that each partition keeps in memory for callers that ask late.")
    static let recentResultBytes = ConfigurationKey(
        "recent-result-bytes", .byteSize(in: 1024...(1 << 34)), default: defaults.recentResultBytes,
        "Size that they may take.")
    static let rebuildRows = ConfigurationKey(
        "rebuild-rows", .integer(in: 1...1_000_000), default: defaults.rebuildRows,
        "Rows of the tables that become one transaction while a stream is rebuilt.")

    /// Every key.
    package static let keys: [any DeclaredConfigurationKey] = [
        partitions, check, batchBytes, readerThreads, maximumReads, maximumWaiters, recentResults, recentResultBytes,
        rebuildRows,
    ]

    /// Reads the settings; the folder is the executable's to set.
    package init(from reader: ConfigurationReader) throws(ConfigurationProblem) {
        self.init(
            directory: ".", partitions: try reader.read(Self.partitions), check: try reader.read(Self.check),
            batchBytes: try reader.read(Self.batchBytes),
            readerThreads: try reader.read(Self.readerThreads), maximumReads: try reader.read(Self.maximumReads),
            maximumWaiters: try reader.read(Self.maximumWaiters), recentResults: try reader.read(Self.recentResults),
            recentResultBytes: try reader.read(Self.recentResultBytes), rebuildRows: try reader.read(Self.rebuildRows))
    }
}

extension ConfigurationType where Value == PartitionSelection {
    /// `all`, or partitions by number: a sequence in the file, too.
    fileprivate static var servedPartitions: ConfigurationType {
        ConfigurationType(
            placeholder: "all|0-31,40,…",
            expected: "all, or numbers and ranges of partitions, separated by commas: 0-31,40",
            parse: { text in
                switch text {
                case .one(let text): PartitionSelection(text)
                case .many(let elements): PartitionSelection(elements.joined(separator: ","))
                }
            }, render: \.description)
    }
}
