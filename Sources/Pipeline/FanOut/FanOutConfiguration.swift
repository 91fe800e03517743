/// How a fan-out works: where its files lie and how much it does at once.
package struct FanOutConfiguration: Sendable, Hashable {
    /// What is looked at when a partition's file is opened.
    package enum Check: String, Sendable, Hashable, CaseIterable {
        /// Format, history, position and heads; every row is still held against its checksum when it is read.
        case heads
        /// Everything: each page, index and record. Takes some seconds for a gigabyte.
        case full
    }

    /// The folder of the files `fanout-<partition>.db`; made when it does not exist.
    package var directory: String
    /// Which partitions of the history are served, for whoever makes the fan-out (``PartitionSelection/numbers(in:)``).
    package var partitions: PartitionSelection
    /// What is looked at when a partition's file is opened.
    package var check: Check
    /// How many bytes of `ordered` become one transaction, about; a single record may be larger.
    ///
    /// By default 1 MiB: some thousand rows, after which the cost of a commit no longer counts, and a few milliseconds.
    package var batchBytes: Int
    /// How many threads read pulls from the files, for all partitions together.
    package var readerThreads: Int
    /// How many reads may be under way or in line; more are told that the fan-out is not ready.
    ///
    /// By default 1024: what two threads answer in some seconds when each reads a full page.
    package var maximumReads: Int
    /// How many callers may wait for outcomes, and as many for the stream, in each partition; more are told the same.
    ///
    /// By default 16,384: more than a gateway lets uploads be under way, at about a kilobyte each.
    package var maximumWaiters: Int
    /// How many results of parts each partition keeps in memory for callers that ask late.
    ///
    /// By default 8192: a caller asks within milliseconds of its upload, in which no partition orders more.
    package var recentResults: Int
    /// How many bytes they may take, about.
    package var recentResultBytes: Int
    /// How many rows of the tables become one transaction while a stream is rebuilt, about; so many are held in memory.
    package var rebuildRows: Int
    /// The time between two reports of how far a rebuild has come; one that takes less has none.
    package var rebuildReports: Duration
    /// The first and the longest pause before something that failed is tried again; each is twice the one before.
    package var retryDelay: ClosedRange<Duration>

    /// Sets what differs from the defaults; numbers below 1 trap.
    package init(
        directory: String, partitions: PartitionSelection = .all, check: Check = .full, batchBytes: Int = 1 << 20,
        readerThreads: Int = 2,
        maximumReads: Int = 1024, maximumWaiters: Int = 16_384, recentResults: Int = 8192,
        recentResultBytes: Int = 4 << 20, rebuildRows: Int = 4096, rebuildReports: Duration = .seconds(5),
        retryDelay: ClosedRange<Duration> = .milliseconds(100)...(.seconds(5))
    ) {
        precondition(
            min(batchBytes, readerThreads, maximumReads, maximumWaiters, recentResults, recentResultBytes, rebuildRows)
                >= 1, "sizes and counts of a fan-out are at least 1")
        precondition(retryDelay.lowerBound > .zero, "a fan-out pauses before it tries again")
        self.directory = directory
        self.partitions = partitions
        self.check = check
        self.batchBytes = batchBytes
        self.readerThreads = readerThreads
        self.maximumReads = maximumReads
        self.maximumWaiters = maximumWaiters
        self.recentResults = recentResults
        self.recentResultBytes = recentResultBytes
        self.rebuildRows = rebuildRows
        self.rebuildReports = rebuildReports
        self.retryDelay = retryDelay
    }
}
