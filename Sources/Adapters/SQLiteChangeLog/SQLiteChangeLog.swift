import AsyncPrimitives
import ChangeLog
import LocalLog
import Synchronization
import ThreadExecutor

/// The log in one SQLite file, for one process: durable appends with one fsync for all that wait, readers that are woken,
/// groups within the process.
///
/// Whoever opens it closes it. One process opens a file at a time: the log keeps what it knows of the file in memory.
package final class SQLiteChangeLog: PrunableLog {
    /// The largest record, key and value together.
    package let maximumRecordSize: Int

    private let partitions: LogPartitions
    private let tails: [PartitionTail]
    private let queue: WorkQueue
    private let groups: LocalGroups
    private let files: LogFileReaders
    private let thread: DedicatedThread
    private let counters: WriteCounters
    /// The writer's work, from the opening to the closed file.
    private let writing: Task<Result<Void, ChangeLogError>, Never>
    private let closing = Mutex<Task<Result<Void, ChangeLogError>, Never>?>(nil)

    /// Opens a log, making its file where there is none.
    ///
    /// - Parameters:
    ///   - configuration: where the file is, and the bounds.
    ///   - metrics: what is counted.
    ///   - clock: gives each record its time, in microseconds since 1970.
    package init(
        _ configuration: SQLiteChangeLogConfiguration, metrics: SQLiteLogMetrics = SQLiteLogMetrics(),
        clock: @escaping @Sendable () -> Int64 = WallClock.microseconds
    ) async throws(ChangeLogError) {
        let queue = WorkQueue(maximumBytes: configuration.queueBytes)
        let counters = WriteCounters()
        let thread: DedicatedThread
        do {
            thread = try DedicatedThread(name: "weir-log")
        } catch {
            throw ChangeLogError(error, partition: nil)
        }
        let opened: OpenedLog
        do {
            opened = try await thread.run { () throws -> OpenedLog in
                let file = try LogFile(configuration)
                let partitions = file.partitions
                let tails = file.ranges.map { PartitionTail(range: $0, maximumBytes: configuration.tailBytes) }
                let reserve = Reserve(path: configuration.path, bytes: configuration.reserveBytes)
                let writer = LogWriter(
                    file: file, thread: thread, queue: queue, tails: tails, counters: counters, reserve: reserve,
                    metrics: metrics,
                    clock: clock)
                return OpenedLog(partitions: partitions, tails: tails, writer: writer)
            }
        } catch {
            await thread.close()
            throw ChangeLogError(error, partition: nil)
        }
        let writing = Task { await opened.writer.serve() }
        do {
            files = try await LogFileReaders(path: configuration.path, threads: configuration.readerThreads)
        } catch {
            queue.close()
            let outcome = await writing.value
            await thread.close()
            try outcome.get()
            throw ChangeLogError(error, partition: nil)
        }
        self.queue = queue
        self.counters = counters
        self.thread = thread
        self.writing = writing
        partitions = opened.partitions
        tails = opened.tails
        groups = LocalGroups(partitions: opened.partitions, queue: queue)
        maximumRecordSize = configuration.maximumRecordSize
    }

    private struct OpenedLog: Sendable {
        let partitions: LogPartitions
        let tails: [PartitionTail]
        let writer: LogWriter
    }

    /// How many partitions `uploads`, `changes`, `ordered` and `dead-letters` have.
    package var partitionCount: Int { partitions.count }

    /// What was written since the log was opened.
    package var statistics: SQLiteLogStatistics { counters.statistics }

    /// Bytes of records that wait to be written or are being written.
    package var queuedBytes: Int { queue.size }

    /// Makes a producer.
    package func producer() async throws(ChangeLogError) -> LocalProducer {
        LocalProducer(queue: queue, partitions: partitions, maximumRecordSize: maximumRecordSize)
    }

    /// Reads a partition from an offset on.
    package func reader(
        of partition: TopicPartition, from offset: Int64
    ) async throws(ChangeLogError) -> LocalReader {
        try LocalReader(of: partition, from: offset, tail: tail(of: partition)) { [files] in
            try await files.read($0, from: $1, to: $2, maximumBytes: $3)
        }
    }

    /// The offsets that a partition holds now.
    package func range(of partition: TopicPartition) async throws(ChangeLogError) -> LogRange {
        try tail(of: partition).range
    }

    /// Joins a group within this process.
    package func join(group: String, topic: Topic) async throws(ChangeLogError) -> LocalMembership {
        try await groups.join(group, topic: topic)
    }

    /// Removes records of a topic that are older than a moment, in microseconds since 1970; appends go on meanwhile.
    ///
    /// Kept all the same: what stands at or above its partition's floor, what a group of the topic has not worked on, each partition's newest record, and everything of the
    /// topics that are kept for ever, for which this traps. The file does not shrink; its room is used again.
    package func removeRecords(
        of topic: Topic, before time: Int64, floors: [Int: Int64]
    ) async throws(ChangeLogError) {
        precondition(!topic.isKeptForEver, "\(topic) is kept for ever")
        try await queue.request(.remove(topic, before: time, floors: floors))
    }

    /// Returns when the writer has got to it, or has ended: a sign of its life, which writes nothing.
    package func beat() async {
        do throws(ChangeLogError) {
            try await queue.request(.load(GroupName("", topic: .uploads), partition: 0))
        } catch {
            // A writer that fails works; one that is closed has nothing to do.
        }
    }

    /// Writes what is queued and closes the file.
    ///
    /// Readers, producers and members of groups end with ``ChangeLogError/Code/closed``. Closing again is harmless.
    package func close() async throws(ChangeLogError) {
        let closing = closing.withLock { closing in
            if let closing { return closing }
            let begun = Task { await closeOnce() }
            closing = begun
            return begun
        }
        try await closing.value.get()
    }

    private func closeOnce() async -> Result<Void, ChangeLogError> {
        groups.close()
        for tail in tails { tail.close() }
        // The readers' connections first: the one that writes tidies up when it closes last.
        let reading = await Result.capturing { try await files.close() }
        queue.close()
        let written = await writing.value
        await thread.close()
        return Result { () throws(ChangeLogError) in
            try written.get()
            try ChangeLogError.translating(nil) { try reading.get() }
        }
    }

    private func tail(of partition: TopicPartition) throws(ChangeLogError) -> PartitionTail {
        guard let place = partitions.place(of: partition) else { throw .unknown(partition) }
        return tails[place]
    }
}
