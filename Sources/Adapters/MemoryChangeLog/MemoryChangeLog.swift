import ChangeLog
import LocalLog

/// A log in memory, for simulations and tests of stages, which can pause writes, fail them, and crash the log.
package final class MemoryChangeLog: PrunableLog {
    package let maximumRecordSize: Int

    private let partitions: LogPartitions
    private let tails: [PartitionTail]
    private let queue: WorkQueue
    private let groups: LocalGroups
    private let faults: WriteFaults
    private let writer: MemoryWriter
    private let writing: Task<Void, Never>

    /// - Parameters:
    ///   - contents: the initial contents; empty by default.
    ///   - maximumRecordSize: the largest record, key and value together, in bytes.
    ///   - queueBytes: bytes of records that may wait to be written before producers wait.
    ///   - clock: the time of each record, in microseconds since 1970.
    package init(
        _ contents: MemoryLogContents = MemoryLogContents(), maximumRecordSize: Int = 32 << 20,
        queueBytes: Int = 32 << 20, clock: @escaping @Sendable () -> Int64 = WallClock.microseconds
    ) {
        self.maximumRecordSize = maximumRecordSize
        partitions = LogPartitions(count: contents.partitionCount)
        tails = contents.partitions.map { PartitionTail(range: $0.range, records: $0.records, maximumBytes: .max) }
        queue = WorkQueue(maximumBytes: queueBytes)
        groups = LocalGroups(partitions: partitions, queue: queue)
        faults = WriteFaults()
        let writer = MemoryWriter(
            partitions: partitions, tails: tails, offsets: contents.offsets, queue: queue, faults: faults, clock: clock)
        self.writer = writer
        writing = Task { await writer.serve() }
    }

    /// The number of partitions of `uploads`, `changes`, `ordered` and `dead-letters`.
    package var partitionCount: Int { partitions.count }

    package func producer() async throws(ChangeLogError) -> LocalProducer {
        LocalProducer(queue: queue, partitions: partitions, maximumRecordSize: maximumRecordSize)
    }

    package func reader(
        of partition: TopicPartition, from offset: Int64
    ) async throws(ChangeLogError) -> LocalReader {
        // The tail has every record of the range.
        try LocalReader(of: partition, from: offset, tail: tail(of: partition)) { _, _, _, _ in [] }
    }

    package func range(of partition: TopicPartition) async throws(ChangeLogError) -> LogRange {
        try tail(of: partition).range
    }

    package func join(group: String, topic: Topic) async throws(ChangeLogError) -> LocalMembership {
        try await groups.join(group, topic: topic)
    }

    /// Removes records of a topic that are older than `time`, in microseconds since 1970.
    ///
    /// Kept are records at or above their partition's floor, records that a group of the topic has not committed, and each
    /// partition's newest. Traps for a topic that is kept permanently.
    package func removeRecords(
        of topic: Topic, before time: Int64, floors: [Int: Int64], consumers: [String]
    ) async throws(ChangeLogError) {
        precondition(!topic.isKeptForEver, "\(topic) is kept permanently")
        try await queue.request(
            .remove(
                topic, before: time, floors: floors, consumers: consumers.map { GroupName($0, topic: topic) }))
    }

    /// Writes what is queued, also while paused, then closes.
    ///
    /// Readers, producers and members fail with ``ChangeLogError/Code/closed``. May be called again.
    package func close() async {
        groups.close()
        for tail in tails { tail.close() }
        queue.close()
        faults.resume()
        await writing.value
    }

    // MARK: Faults for tests

    /// What is stored now, without the queue.
    package func contents() async -> MemoryLogContents {
        MemoryLogContents(
            partitionCount: partitions.count, partitions: tails.map { .init(range: $0.range, records: $0.newest) },
            offsets: await writer.offsets)
    }

    /// The records of a partition from an offset on; none where there is no such partition.
    package func records(of partition: TopicPartition, from offset: Int64) -> [LogRecord] {
        partitions.index(of: partition).map { tails[$0].newest(from: offset) } ?? []
    }

    /// Pauses all writes, and with them receipts and committed offsets, until ``resume()``.
    package func pause() { faults.pause() }

    package func resume() { faults.resume() }

    /// Fails the next append, and with it its producer; several calls fail as many appends.
    ///
    /// - Parameter isStored: whether the records are stored, as when only the acknowledgement is lost.
    package func failNextAppend(_ error: ChangeLogError, isStored: Bool = false) {
        faults.add(WriteFaults.Fault(error: error, isStored: isStored))
    }

    /// Closes the log without writing the queue, whose receipts fail with ``ChangeLogError/Code/closed``.
    ///
    /// - Returns: what was stored, to open it again.
    package func crash() async -> MemoryLogContents {
        faults.crash()
        await close()
        return await contents()
    }

    private func tail(of partition: TopicPartition) throws(ChangeLogError) -> PartitionTail {
        guard let index = partitions.index(of: partition) else { throw .unknown(partition) }
        return tails[index]
    }
}

/// What a log in memory has stored.
package struct MemoryLogContents: Sendable {
    struct Partition: Sendable {
        let range: LogRange
        let records: [LogRecord]
    }

    package let partitionCount: Int
    let partitions: [Partition]
    /// The committed offsets of each group that ever joined, by partition.
    let offsets: [GroupName: [Int: Int64]]

    package init(partitionCount: Int = 4) {
        precondition(partitionCount > 0, "a log has partitions")
        let empty = Partition(range: LogRange(start: 0, end: 0), records: [])
        self.init(
            partitionCount: partitionCount, partitions: LogPartitions(count: partitionCount).all.map { _ in empty },
            offsets: [:])
    }

    init(partitionCount: Int, partitions: [Partition], offsets: [GroupName: [Int: Int64]]) {
        self.partitionCount = partitionCount
        self.partitions = partitions
        self.offsets = offsets
    }
}
