import ChangeLog
import LocalLog

/// What a log in memory has stored: what would be on a disk.
package struct MemoryLogContents: Sendable {
    /// A partition's records.
    struct Partition: Sendable {
        let range: LogRange
        let records: [LogRecord]
    }

    /// How many partitions `uploads`, `changes`, `ordered` and `dead-letters` have.
    package let partitionCount: Int
    let partitions: [Partition]
    /// The offsets of each group that ever joined, by partition.
    let offsets: [GroupName: [Int: Int64]]

    /// The contents of a new log.
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
