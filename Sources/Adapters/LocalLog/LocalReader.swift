import ChangeLog
import Synchronization

/// Reads one partition: from memory while it keeps up, else from where the log keeps older records.
package final class LocalReader: LogReader {
    /// Reads records that memory does not have, from an offset up to an end; none where there are none any more.
    package typealias Older =
        @Sendable (
            _ partition: TopicPartition, _ offset: Int64, _ end: Int64, _ maximumBytes: Int
        ) async throws -> [LogRecord]

    private let partition: TopicPartition
    private let tail: PartitionTail
    private let older: Older
    private let state: ReaderState

    /// Reads from an offset on; the range is checked now and at each call.
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
            // Retention may take records between the two looks; what follows them must not stand in for them.
            guard let first = records.first, let last = records.last, first.offset == offset else {
                throw ChangeLogError.outOfRange(offset, of: partition, tail.range)
            }
            state.move(to: last.offset + 1)
            return records
        }
    }

    /// Ends the reader.
    package func close() async {
        state.close()
        tail.wakeReaders()
    }
}

/// Where a reader stands, and whether it was closed.
final class ReaderState: Sendable {
    private let state: Mutex<(offset: Int64, isClosed: Bool)>

    init(offset: Int64) { state = Mutex((offset, false)) }

    var offset: Int64 { state.withLock { $0.offset } }

    var isClosed: Bool { state.withLock { $0.isClosed } }

    func move(to offset: Int64) { state.withLock { $0.offset = offset } }

    func close() { state.withLock { $0.isClosed = true } }
}
