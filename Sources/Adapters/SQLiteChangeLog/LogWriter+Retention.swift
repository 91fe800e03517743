import ChangeLog
import LocalLog
import SQLite

/// A removal of old records that goes on between the writer's transactions.
struct Removal {
    /// Records from this moment on stay, in microseconds since 1970.
    let before: Int64
    /// By partition: records from this offset on stay.
    let floors: [Int: Int64]
    /// The places of the partitions that are not done.
    var places: [Int]
    /// Fulfilled when all are done.
    let promise: LogPromise<Int64?>
}

extension LogWriter {
    /// How many records one transaction removes: few enough that appends hardly wait, many enough to share a fsync.
    private static let sliceCount = 256

    /// Removes the next few records of the oldest removal, if there is one.
    func removeSlice() {
        guard let removal = removals.first else { return }
        guard let place = removal.places.last else {
            removals.removeFirst()
            removal.promise.fulfil(.success(nil))
            return
        }
        do {
            if try removeOldest(in: place, removal) < Self.sliceCount { removals[0].places.removeLast() }
        } catch {
            removals.removeFirst()
            removal.promise.fulfil(.failure(ChangeLogError(error, partition: partitions.all[place])))
        }
    }

    /// Removes records at a partition's start that are old enough and worked on, but never the newest.
    ///
    /// - Returns: how many were removed.
    private func removeOldest(in place: Int, _ removal: Removal) throws -> Int {
        let partition = partitions.all[place]
        let range = tails[place].range
        let end = try min(
            consumed(partition), range.end - 1, removal.floors[partition.partition] ?? .max,
            oldEnd(of: partition, from: range.start, before: removal.before))
        guard end > range.start else { return 0 }
        // Readers are told first: none may find a part of what it asked for.
        tails[place].setStart(end)
        do {
            try connection.transaction(.immediate) {
                var delete = try connection.prepare("DELETE FROM \(LogFile.table(of: partition)) WHERE place < ?1")
                try delete.bind(integer: end, at: 1)
                try delete.run()
            }
        } catch {
            tails[place].setStart(range.start)
            throw error
        }
        return Int(end - range.start)
    }

    /// The end of the records that are older than a moment, looking no further than one slice.
    private func oldEnd(of partition: TopicPartition, from start: Int64, before time: Int64) throws -> Int64 {
        var select = try connection.prepare(
            "SELECT place, time FROM \(LogFile.table(of: partition)) ORDER BY place LIMIT \(Self.sliceCount)")
        var end = start
        while try select.step(), try select.integer(at: 1) < time { end = try select.integer(at: 0) + 1 }
        return end
    }

    /// Up to where every group of the topic has worked; a group that has not committed yet has worked on nothing.
    private func consumed(_ partition: TopicPartition) throws -> Int64 {
        var select = try connection.statement(
            """
            SELECT min(coalesce(next_offset, 0)) FROM weir_groups AS g
            LEFT JOIN weir_offsets AS o ON o.name = g.name AND o.topic = g.topic AND o.partition = ?2
            WHERE g.topic = ?1
            """)
        try select.bind(text: partition.topic.rawValue, at: 1)
        try select.bind(integer: Int64(partition.partition), at: 2)
        // NULL: nobody reads the topic in a group.
        guard try select.step(), !select.isNull(at: 0) else { return .max }
        return try select.integer(at: 0)
    }
}
