import ChangeLog
import Synchronization

/// Reads one partition: from memory while it keeps up, otherwise from the log's storage.
package final class LocalReader: LogReader {
    /// Reads records that are not in memory, from an offset to an end; none if retention has removed them.
    package typealias Older =
        @Sendable (
            _ partition: TopicPartition, _ offset: Int64, _ end: Int64, _ maximumBytes: Int
        ) async throws -> [LogRecord]

    private let partition: TopicPartition
    private let tail: PartitionTail
    private let older: Older
    private let state: ReaderState

    /// - Throws: `outOfRange` for an offset that the partition does not have, now and at each read.
    package init(
        of partition: TopicPartition, from offset: Int64, tail: PartitionTail, older: @escaping Older
    ) throws(ChangeLogError) {
        let range = tail.range
        guard offset >= range.start, offset <= range.end else { throw .outOfRange(offset, of: partition, range) }
        self.partition = partition
        self.tail = tail
        self.older = older
        state = ReaderState(offset: offset)
    }

    /// The next records, at least one.
    package func next(maximumBytes: Int) async throws -> [LogRecord] {
        while true {
            try Task.checkCancellation()
            if state.isClosed { throw ChangeLogError.closed("the reader", partition: partition) }
            let offset = state.offset
            let records: [LogRecord]
            switch tail.find(offset, maximumBytes: maximumBytes) {
            case .records(let found): records = found
            case .older(let end): records = try await older(partition, offset, end, maximumBytes)
            case .nothing:
                try await tail.wait(past: offset, state)
                continue
            case .outOfRange(let range): throw ChangeLogError.outOfRange(offset, of: partition, range)
            case .closed: throw ChangeLogError.closed("the log", partition: partition)
            }
            // Retention may remove records between the lookup and the read, which then begins at a later offset.
            guard let first = records.first, let last = records.last, first.offset == offset else {
                throw ChangeLogError.outOfRange(offset, of: partition, tail.range)
            }
            state.move(to: last.offset + 1)
            return records
        }
    }

    package func close() async {
        state.close()
        tail.wakeReaders()
    }
}

final class ReaderState: Sendable {
    private let state: Mutex<(offset: Int64, isClosed: Bool)>

    init(offset: Int64) { state = Mutex((offset, false)) }

    var offset: Int64 { state.withLock { $0.offset } }

    var isClosed: Bool { state.withLock { $0.isClosed } }

    func move(to offset: Int64) { state.withLock { $0.offset = offset } }

    func close() { state.withLock { $0.isClosed = true } }
}
