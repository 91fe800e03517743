import AsyncPrimitives
import ChangeLog
import LocalLog
import SQLite

/// A removal of old records, which runs in slices between the writer's transactions.
struct Removal {
    /// Records from this time on are kept, in microseconds since 1970.
    let before: Int64
    /// By partition: records from this offset on are kept.
    let floors: [Int: Int64]
    /// Groups whose offsets must be known.
    let consumers: [GroupName]
    /// The indexes of the remaining partitions.
    var partitions: [Int]
    /// Fulfilled at the end.
    let promise: LogPromise<Int64?>
}

extension LogWriter {
    /// How many records one transaction removes: few, so that appends hardly wait, but enough to share an fsync.
    private static let sliceCount = 256

    /// Removes the next slice of the oldest removal, if there is one.
    func removeSlice() {
        guard let removal = removals.first else { return }
        guard let index = removal.partitions.last else {
            removals.removeFirst()
            removal.promise.fulfilOnce(.success(nil))
            return
        }
        do {
            if try removeOldest(in: index, removal) < Self.sliceCount { removals[0].partitions.removeLast() }
        } catch {
            removals.removeFirst()
            removal.promise.fulfilOnce(.failure(ChangeLogError(error, partition: partitions.all[index])))
        }
    }

    /// Removes records at a partition's start that are old enough and committed by all groups, but never the newest.
    ///
    /// - Returns: how many were removed.
    private func removeOldest(in index: Int, _ removal: Removal) throws -> Int {
        let partition = partitions.all[index]
        let range = tails[index].range
        let end = try min(
            consumed(partition, removal.consumers), range.end - 1, removal.floors[partition.partition] ?? .max,
            oldEnd(of: partition, from: range.start, before: removal.before))
        guard end > range.start else { return 0 }
        // Before the deletion, so that no reader gets only a part of the records.
        tails[index].setStart(end)
        do {
            try connection.transaction(.immediate) {
                var delete = try connection.prepare("DELETE FROM \(LogFile.table(of: partition)) WHERE place < ?1")
                try delete.bind(integer: end, at: 1)
                try delete.run()
            }
        } catch {
            tails[index].setStart(range.start)
            throw error
        }
        return Int(end - range.start)
    }

    /// The end of the records that are older than a time, at most one slice from the start.
    private func oldEnd(of partition: TopicPartition, from start: Int64, before time: Int64) throws -> Int64 {
        var select = try connection.prepare(
            "SELECT place, time FROM \(LogFile.table(of: partition)) ORDER BY place LIMIT \(Self.sliceCount)")
        var end = start
        while try select.step(), try select.integer(at: 1) < time { end = try select.integer(at: 0) + 1 }
        return end
    }

    /// The lowest offset that the groups of the topic have committed; 0 for a group that has not committed yet.
    private func consumed(_ partition: TopicPartition, _ consumers: [GroupName]) throws -> Int64 {
        for consumer in consumers where try groups.offset(of: consumer, partition.partition) == nil { return 0 }
        var select = try connection.statement(
            """
            SELECT min(coalesce(next_offset, 0)) FROM weir_groups AS g
            LEFT JOIN weir_offsets AS o ON o.name = g.name AND o.topic = g.topic AND o.partition = ?2
            WHERE g.topic = ?1
            """)
        try select.bind(text: partition.topic.rawValue, at: 1)
        try select.bind(integer: Int64(partition.partition), at: 2)
        // NULL: the topic has no groups.
        guard try select.step(), !select.isNull(at: 0) else { return .max }
        return try select.integer(at: 0)
    }
}
