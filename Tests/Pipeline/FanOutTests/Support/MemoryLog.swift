import ChangeLog
import Synchronization

/// A log in memory whose ranges and failures a test sets.
final class MemoryLog: ChangeLog {
    private struct Partition {
        var start: Int64 = 0
        var records: [LogRecord] = []
        var end: Int64 { start + Int64(records.count) }
    }

    private struct State {
        var partitions: [TopicPartition: Partition] = [:]
        var readers: [ObjectIdentifier: MemoryReader] = [:]
        var failures: [ChangeLogError] = []
        var rangeFailures: [ChangeLogError] = []
        var readerCount = 0
    }

    let partitionCount: Int
    let maximumRecordSize = 1 << 20
    private let state = Mutex(State())

    init(partitions: Int) { partitionCount = partitions }

    /// Appends a record and wakes readers.
    @discardableResult
    func append(_ value: [UInt8], to partition: TopicPartition, time: Int64 = 0) -> Int64 {
        let (offset, readers) = state.withLock { state in
            let offset = state.partitions[partition, default: Partition()].end
            state.partitions[partition, default: Partition()].records
                .append(LogRecord(offset: offset, time: time, key: [], value: value))
            return (offset, Array(state.readers.values))
        }
        for reader in readers { reader.wake() }
        return offset
    }

    /// Removes records below an offset, as retention does.
    func removeRecords(below offset: Int64, of partition: TopicPartition) {
        state.withLock { state in
            var log = state.partitions[partition, default: Partition()]
            let count = min(log.records.count, Int(offset - log.start))
            log.records.removeFirst(max(count, 0))
            log.start = offset
            state.partitions[partition] = log
        }
    }

    /// Starts an empty partition.
    func empty(_ partition: TopicPartition) { state.withLock { $0.partitions[partition] = nil } }

    /// Removes the newest records, as no log may.
    func removeRecords(from offset: Int64, of partition: TopicPartition) {
        state.withLock { state in
            guard var log = state.partitions[partition] else { return }
            log.records.removeAll { $0.offset >= offset }
            state.partitions[partition] = log
        }
    }

    /// Lets the next calls that make readers fail.
    func fail(with errors: [ChangeLogError]) { state.withLock { $0.failures += errors } }

    /// Lets the next calls for a range fail.
    func failRanges(with errors: [ChangeLogError]) { state.withLock { $0.rangeFailures += errors } }

    /// How many readers were made.
    var readerCount: Int { state.withLock { $0.readerCount } }

    func records(of partition: TopicPartition, from offset: Int64, maximumBytes: Int) -> [LogRecord] {
        state.withLock { state in
            guard let log = state.partitions[partition], offset < log.end, offset >= log.start else { return [] }
            var size = 0
            var records: [LogRecord] = []
            for record in log.records[Int(offset - log.start)...] {
                records.append(record)
                size += record.value.count
                if size >= maximumBytes { break }
            }
            return records
        }
    }

    func remove(_ reader: MemoryReader) { state.withLock { $0.readers[ObjectIdentifier(reader)] = nil } }

    // MARK: Port

    func producer() async throws(ChangeLogError) -> MemoryProducer { MemoryProducer(log: self) }

    func reader(of partition: TopicPartition, from offset: Int64) async throws(ChangeLogError) -> MemoryReader {
        let reader = MemoryReader(log: self, partition: partition, offset: offset)
        try state.withLock { state throws(ChangeLogError) in
            if !state.failures.isEmpty { throw state.failures.removeFirst() }
            let log = state.partitions[partition, default: Partition()]
            guard offset >= log.start, offset <= log.end else {
                let range = LogRange(start: log.start, end: log.end)
                throw ChangeLogError(.outOfRange(range), partition: partition, message: "no offset \(offset)")
            }
            state.readers[ObjectIdentifier(reader)] = reader
            state.readerCount += 1
        }
        return reader
    }

    func range(of partition: TopicPartition) async throws(ChangeLogError) -> LogRange {
        try state.withLock { state throws(ChangeLogError) in
            if !state.rangeFailures.isEmpty { throw state.rangeFailures.removeFirst() }
            let log = state.partitions[partition, default: Partition()]
            return LogRange(start: log.start, end: log.end)
        }
    }

    func join(group: String, topic: Topic) async throws(ChangeLogError) -> NoMembership { NoMembership() }
}

/// Appends to a log in memory.
final class MemoryProducer: LogProducer {
    private let log: MemoryLog

    init(log: MemoryLog) { self.log = log }

    func enqueue(_ records: [NewRecord]) async throws(ChangeLogError) -> AppendReceipt {
        let offsets = records.map { log.append($0.value, to: $0.destination) }
        return AppendReceipt { .success(offsets) }
    }

    func close() async {}
}

/// Reads a log in memory; waits for appends by a signal.
final class MemoryReader: LogReader {
    private let log: MemoryLog
    private let partition: TopicPartition
    private let offset: Mutex<Int64>
    private let signal: AsyncStream<Void>
    private let continuation: AsyncStream<Void>.Continuation

    init(log: MemoryLog, partition: TopicPartition, offset: Int64) {
        self.log = log
        self.partition = partition
        self.offset = Mutex(offset)
        // One signal is as good as many: it says that there may be something.
        (signal, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    func wake() { continuation.yield() }

    func next(maximumBytes: Int) async throws -> [LogRecord] {
        var signals = signal.makeAsyncIterator()
        while true {
            let from = offset.withLock { $0 }
            let range = try await log.range(of: partition)
            guard from >= range.start else {
                throw ChangeLogError(.outOfRange(range), partition: partition, message: "\(from) is gone")
            }
            let records = log.records(of: partition, from: from, maximumBytes: maximumBytes)
            if let last = records.last {
                offset.withLock { $0 = last.offset + 1 }
                return records
            }
            if await signals.next() == nil {
                try Task.checkCancellation()
                throw ChangeLogError(.closed, partition: partition, message: "the reader was closed")
            }
        }
    }

    func close() async {
        continuation.finish()
        log.remove(self)
    }
}

/// No test of the fan-out joins a group.
struct NoMembership: LogMembership {
    func run(_ worker: @escaping @Sendable (Assignment) async throws -> Void) async throws {}
    func leave() async {}
}
