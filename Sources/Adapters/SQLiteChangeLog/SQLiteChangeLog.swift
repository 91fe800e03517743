import AsyncPrimitives
import ChangeLog
@_exported import LocalLog
import Synchronization
import ThreadExecutor

/// The log in one SQLite file, for one process: group commit with one fsync, readers that wait without polling, groups within
/// the process.
///
/// The caller that opens it closes it. Only one process may open a file at a time, since the log caches the file's state.
package final class SQLiteChangeLog: PrunableLog {
    package let maximumRecordSize: Int

    private let partitions: LogPartitions
    private let tails: [PartitionTail]
    private let queue: WorkQueue
    private let groups: LocalGroups
    private let files: LogFileReaders
    private let thread: DedicatedThread
    private let counters: WriteCounters
    /// Runs the writer until the file is closed.
    private let writing: Task<Result<Void, ChangeLogError>, Never>
    private let closing = Mutex<Task<Result<Void, ChangeLogError>, Never>?>(nil)

    /// Opens the file, and creates it if it is missing.
    ///
    /// - Parameter clock: the time of records, in microseconds since 1970.
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
                    metrics: metrics, clock: clock)
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

    /// Since the log was opened.
    package var statistics: SQLiteLogStatistics { counters.statistics }

    /// Bytes of records that are not yet written.
    package var queuedBytes: Int { queue.size }

    package func producer() async throws(ChangeLogError) -> LocalProducer {
        LocalProducer(queue: queue, partitions: partitions, maximumRecordSize: maximumRecordSize)
    }

    package func reader(
        of partition: TopicPartition, from offset: Int64
    ) async throws(ChangeLogError) -> LocalReader {
        try LocalReader(of: partition, from: offset, tail: tail(of: partition)) { [files] in
            try await files.read($0, from: $1, to: $2, maximumBytes: $3)
        }
    }

    package func range(of partition: TopicPartition) async throws(ChangeLogError) -> LogRange {
        try tail(of: partition).range
    }

    package func join(group: String, topic: Topic) async throws(ChangeLogError) -> LocalMembership {
        try await groups.join(group, topic: topic)
    }

    /// Removes records of a topic that are older than a time, in microseconds since 1970; appends continue meanwhile.
    ///
    /// It keeps records at or above their partition's floor, records that a group of the topic has not committed, and each
    /// partition's newest record. It traps for topics that are kept permanently. The file does not shrink; its space is reused.
    package func removeRecords(
        of topic: Topic, before time: Int64, floors: [Int: Int64], consumers: [String]
    ) async throws(ChangeLogError) {
        precondition(!topic.isKeptForEver, "\(topic) is kept for ever")
        try await queue.request(
            .remove(
                topic, before: time, floors: floors, consumers: consumers.map { GroupName($0, topic: topic) }))
    }

    /// Returns when the writer has handled an empty request, or has ended: shows that it is not stuck.
    package func beat() async {
        do throws(ChangeLogError) {
            try await queue.request(.load(GroupName("", topic: .uploads), partition: 0))
        } catch {
            // A writer whose writes fail is not stuck; a closed one has nothing to do.
        }
    }

    /// Writes the queued work and closes the file; may be repeated.
    ///
    /// Readers, producers and members of groups fail with ``ChangeLogError/Code/closed``.
    package func close() async throws(ChangeLogError) {
        let closing = closing.withLock { closing in
            if let closing { return closing }
            let task = Task { await closeOnce() }
            closing = task
            return task
        }
        try await closing.value.get()
    }

    private func closeOnce() async -> Result<Void, ChangeLogError> {
        groups.close()
        for tail in tails { tail.close() }
        // The readers first: the writing connection removes the write-ahead log if it closes last.
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
        guard let index = partitions.index(of: partition) else { throw .unknown(partition) }
        return tails[index]
    }
}
