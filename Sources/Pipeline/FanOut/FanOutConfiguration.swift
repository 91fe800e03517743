import Configuration

/// The settings of the fan-out; the executable scopes them with `fanout.` and names the folder.
package struct FanOutConfiguration: ConfigurationComponent, Hashable {
    /// What is checked when a partition's file is opened.
    package enum Check: String, Sendable, Hashable, CaseIterable {
        /// Format, epoch, position and heads; the checksum of every row is still checked when it is read.
        case heads
        /// Each page, index and record too; takes some seconds for a gigabyte.
        case full
    }

    /// The folder of the files `fanout-<partition>.db`; created when it does not exist.
    package var directory = "."
    /// Which partitions of the history are served; see ``PartitionSelection/numbers(in:)``.
    package var partitions = PartitionSelection.all
    package var check = Check.full
    /// Whether streams have indexes of rows by id and by table, which faces read.
    package var rowIndexes = false
    /// A single record may be larger.
    ///
    /// 1 MiB: some thousand rows, after which the cost of a commit no longer counts, and a few milliseconds.
    package var batchBytes = 1 << 20
    package var readerThreads = 2
    /// Seconds for which an owner with a read that took long does not have the thread for short reads.
    package var longReadMemory = 30
    /// 1024: what two threads answer in some seconds when each reads a full page.
    package var maximumReads = 1024
    /// As many again may wait for the stream.
    ///
    /// 16,384: more than a gateway lets uploads be in flight, at about a kilobyte each.
    package var maximumWaiters = 16_384
    /// 8192: a caller asks within milliseconds of its upload, in which no partition orders more.
    package var recentResults = 8192
    /// Approximate.
    package var recentResultBytes = 4 << 20
    /// Approximate; so many are held in memory.
    package var rebuildRows = 4096
    /// The size of a stream's write-ahead log from which commits copy it into the file.
    ///
    /// SQLite starts again at the log's beginning only when no reader uses it, which may never be the case while pulls
    /// overlap. From twice the size, reads wait for a moment, so that the log can be truncated.
    package var checkpointBytes = Self.checkpointBytes
    /// The time between two progress reports of a rebuild; one that takes less has none.
    package var rebuildReports: Duration = .seconds(5)
    /// The first and the longest pause before something that failed is retried; each is twice the one before.
    package var retryDelay: ClosedRange<Duration> = .milliseconds(100)...(.seconds(5))

    /// 64 MiB: pages that change often are copied only once.
    static let checkpointBytes = 64 << 20

    package init() {}

    package init(directory: String) { self.directory = directory }

    package static var settings: [Setting<Self>] {
        Setting(
            "partitions", \.partitions, .partitionSelection,
            "Partitions whose streams this process serves; more than one fan-out may serve the same.")
        Setting(
            "check", \.check, .choice(Check.self),
            "What is checked when a stream is opened: heads, or full (about a second for a gigabyte).")
        Setting(
            "batch-bytes", \.batchBytes, .byteSize(in: 1024...(64 << 20)),
            "Size of the results that become one transaction of a stream.")
        Setting(
            "reader-threads", \.readerThreads, .integer(in: 1...256),
            "Threads that read pulls from the streams; the first of several is for owners whose reads are short.")
        Setting(
            "max-reads", \.maximumReads, .integer(in: 1...1_000_000),
            "Reads in flight or queued; more are answered not_ready, as are those of an owner that has as many as are free."
        )
        Setting(
            "max-waiters", \.maximumWaiters, .integer(in: 1...1_000_000),
            "Callers of a partition that may wait for outcomes; more are answered not_ready.")
        Setting(
            "recent-results", \.recentResults, .integer(in: 1...10_000_000),
            "Results that each partition keeps in memory for callers that ask after they were applied.")
        Setting(
            "recent-result-bytes", \.recentResultBytes, .byteSize(in: 1024...(1 << 34)), "Size of these results.")
        Setting(
            "rebuild-rows", \.rebuildRows, .integer(in: 1...1_000_000),
            "Rows of the tables that become one transaction while a stream is rebuilt.")
    }

    /// Traps on values that no key allows.
    func requirePositiveBounds() {
        precondition(
            min(batchBytes, readerThreads, maximumReads, maximumWaiters, recentResults, recentResultBytes, rebuildRows)
                >= 1, "sizes and counts of a fan-out are at least 1")
        precondition(retryDelay.lowerBound > .zero, "a fan-out pauses before a retry")
    }
}

extension ConfigurationType where Value == PartitionSelection {
    /// `all`, or partitions by number: a sequence in the file, too.
    fileprivate static var partitionSelection: ConfigurationType {
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
