import AsyncPrimitives
import ChangeLog
import PartitionSupervision
import SyncModel
import SyncWire

/// The offset at which a run begins.
extension PartitionRun {
    /// Without a committed offset a partition is read from its earliest record (I1).
    func makeReader() async throws -> Log.Reader {
        var start = try await assignment.committed()
        if start == nil { start = try await earliest() }
        let offset = start ?? 0
        report(.started(partition: partition.partition, nextOffset: offset))
        do {
            return try await log.reader(of: partition, from: offset)
        } catch {
            guard case .outOfRange(let range) = error.code else { throw error }
            throw IngestError.positionOutOfRange(
                UploadReference(partition: partition.partition, offset: offset), range)
        }
    }

    /// The earliest record.
    ///
    /// Without a committed offset the topic may have been recreated: it assigns the same offsets again, and ordering would drop
    /// the parts of new records as already seen (I2).
    private func earliest() async throws -> Int64 {
        let range = try await log.range(of: partition)
        if let newest = try await log.newestAdmitted(
            in: partition.partition, of: context.history), newest >= range.end
        {
            throw IngestError.uploadsLost(UploadReference(partition: partition.partition, offset: newest), range)
        }
        return range.start
    }
}

extension ChangeLog {
    /// The offset of the newest record of a partition of `uploads` that has a part in `changes`; `nil` where none has.
    ///
    /// Part 0 of every batch is in the partition of the same number, which is read backwards in growing ranges.
    package func newestAdmitted(in partition: Int, of history: History) async throws -> Int64? {
        let changes = TopicPartition(.changes, partition)
        let range = try await range(of: changes)
        var end = range.end
        var count: Int64 = 64
        while end > range.start {
            let start = max(range.start, end - count)
            let reader = try await reader(of: changes, from: start)
            let found = await Result.capturing { try await reader.newestUpload(of: partition, history, before: end) }
            await reader.close()
            if let newest = try found.get() { return newest }
            (end, count) = (start, count * 4)
        }
        return nil
    }
}

extension LogReader {
    /// The highest offset of a partition of `uploads` in the parts before an offset of `changes`.
    fileprivate func newestUpload(of partition: Int, _ history: History, before end: Int64) async throws -> Int64? {
        var newest: Int64?
        var next: Int64 = 0
        while next < end {
            for record in try await self.next(maximumBytes: 1 << 20) {
                next = record.offset + 1
                let part: ChangePart
                // Ordering reports a record that cannot be read.
                do { part = try ChangePart(decoding: record.value) } catch { continue }
                guard part.epoch.utf8.elementsEqual(history.epoch.utf8), part.upload.partition == partition else {
                    continue
                }
                newest = max(newest ?? part.upload.offset, part.upload.offset)
            }
        }
        return newest
    }
}
