import ChangeLog
import LocalLog

/// A log in memory, for simulations and for tests of stages: it keeps the port's promises, and lets a test withhold writes,
/// fail them, and crash.
package final class MemoryChangeLog: PrunableLog {
    /// The largest record, key and value together.
    package let maximumRecordSize: Int

    private let partitions: LogPartitions
    private let tails: [PartitionTail]
    private let queue: WorkQueue
    private let groups: LocalGroups
    private let faults: WriteFaults
    private let writer: MemoryWriter
    private let writing: Task<Void, Never>

    /// Makes an empty log, or opens one with what another one held.
    ///
    /// - Parameters:
    ///   - contents: what the log begins with.
    ///   - maximumRecordSize: the largest record, key and value together, in bytes.
    ///   - queueBytes: how many bytes of records may wait to be written before producers wait.
    ///   - clock: gives each record its time, in microseconds since 1970.
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

    /// How many partitions `uploads`, `changes`, `ordered` and `dead-letters` have.
    package var partitionCount: Int { partitions.count }

    /// Makes a producer.
    package func producer() async throws(ChangeLogError) -> LocalProducer {
        LocalProducer(queue: queue, partitions: partitions, maximumRecordSize: maximumRecordSize)
    }

    /// Reads a partition from an offset on.
    package func reader(
        of partition: TopicPartition, from offset: Int64
    ) async throws(ChangeLogError) -> LocalReader {
        // Memory has every record of the range.
        try LocalReader(of: partition, from: offset, tail: tail(of: partition)) { _, _, _, _ in [] }
    }

    /// The offsets that a partition holds now.
    package func range(of partition: TopicPartition) async throws(ChangeLogError) -> LogRange {
        try tail(of: partition).range
    }

    /// Joins a group.
    package func join(group: String, topic: Topic) async throws(ChangeLogError) -> LocalMembership {
        try await groups.join(group, topic: topic)
    }

    /// Removes records of a topic that are older than a moment, in microseconds since 1970.
    ///
    /// Kept all the same: what stands at or above its partition's floor, what a group of the topic has not worked on, each partition's newest record, and everything of the
    /// topics that are kept for ever, for which this traps.
    package func removeRecords(
        of topic: Topic, before time: Int64, floors: [Int: Int64]
    ) async throws(ChangeLogError) {
        precondition(!topic.isKeptForEver, "\(topic) is kept for ever")
        try await queue.request(.remove(topic, before: time, floors: floors))
    }

    /// Writes what is queued, paused or not.
    ///
    /// Readers, producers and members of groups end with ``ChangeLogError/Code/closed``. Closing again is harmless.
    package func close() async {
        groups.close()
        for tail in tails { tail.close() }
        queue.close()
        faults.resume()
        await writing.value
    }

    // MARK: What a test does to it

    /// What is stored now, without what waits.
    package func contents() async -> MemoryLogContents {
        MemoryLogContents(
            partitionCount: partitions.count, partitions: tails.map { .init(range: $0.range, records: $0.newest) },
            offsets: await writer.offsets)
    }

    /// The records of a partition from an offset on, at once; none where it has no such partition.
    package func records(of partition: TopicPartition, from offset: Int64) -> [LogRecord] {
        partitions.index(of: partition).map { tails[$0].newest(from: offset) } ?? []
    }

    /// Withholds every write, and with it every receipt and committed offset, until ``resume()``.
    package func pause() { faults.pause() }

    /// Writes again, beginning with what was withheld.
    package func resume() { faults.resume() }

    /// Fails the next append that no earlier call fails, and with it its producer.
    ///
    /// - Parameter isStored: whether its records get into the log all the same, as when only the acknowledgement is lost.
    package func failNextAppend(_ error: ChangeLogError, isStored: Bool = false) {
        faults.add(WriteFaults.Fault(error: error, isStored: isStored))
    }

    /// Closes the log without writing what waits, whose receipts fail with ``ChangeLogError/Code/closed``.
    ///
    /// - Returns: what was stored, for opening it again.
    package func crash() async -> MemoryLogContents {
        faults.crash()
        await close()
        return await contents()
    }

    private func tail(of partition: TopicPartition) throws(ChangeLogError) -> PartitionTail {
        guard let place = partitions.index(of: partition) else { throw .unknown(partition) }
        return tails[place]
    }
}
