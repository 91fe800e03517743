import ChangeLog
import SyncModel
import Synchronization

/// A log in memory that can withhold acknowledgements, fail appends and forget commits.
final class TestLog: ChangeLog {
    struct State {
        var records: [TopicPartition: [LogRecord]] = [:]
        /// Offsets below were removed.
        var starts: [TopicPartition: Int64] = [:]
        var committed: [Int: Int64] = [:]
        var bells: [AsyncStream<Void>.Continuation] = []
        /// Appends not written yet, oldest first.
        var pending: [Pending] = []
        var mostPending = 0
        var isHolding = false
        var forgetsCommits = false
        /// What the next appends fail with; `nil` lets one succeed.
        var faults: [ChangeLogError?] = []
        var commitFaults: [ChangeLogError] = []
    }

    struct Pending {
        let producer: TestProducer
        let records: [NewRecord]
        let slot: Slot<Result<[Int64], ChangeLogError>>
    }

    let partitionCount = 4
    let maximumRecordSize: Int
    let enqueues = Tally()
    let commits = Tally()
    let producersMade = Tally()
    let closed = Tally()
    private let state = Mutex(State())

    init(maximumRecordSize: Int = 1 << 20) { self.maximumRecordSize = maximumRecordSize }

    func change<Result: Sendable>(_ body: (inout sending State) -> sending Result) -> Result {
        state.withLock(body)
    }

    /// Puts a record behind those of its partition, as an edge does.
    func upload(_ upload: Upload) {
        let partition = TopicPartition(.uploads, upload.partition)
        let bells = change { state in
            let offset = (state.starts[partition] ?? 0) + Int64(state.records[partition, default: []].count)
            let record = upload.record
            state.records[partition, default: []].append(
                LogRecord(offset: offset, time: record.time, key: record.key, value: record.value))
            return state.bells
        }
        for bell in bells { bell.yield() }
    }

    /// The records of a topic, partition by partition.
    func records(of topic: Topic) -> [LogRecord] {
        change { state in
            (0..<partitionCount).flatMap { state.records[TopicPartition(topic, $0)] ?? [] }
        }
    }

    func committed(_ partition: Int) -> Int64? { change { $0.committed[partition] } }

    /// Withholds what is appended from now on.
    func hold() { change { $0.isHolding = true } }

    /// Writes and acknowledges what is withheld.
    func release() {
        change { $0.isHolding = false }
        write()
    }

    /// Writes and acknowledges the oldest append that is withheld.
    func releaseOne() { write(maximum: 1) }

    // MARK: The port

    func producer() async throws(ChangeLogError) -> TestProducer {
        producersMade.add()
        return TestProducer(log: self)
    }

    func reader(of partition: TopicPartition, from offset: Int64) async throws(ChangeLogError) -> TestReader {
        let range = try await range(of: partition)
        guard (range.start...range.end).contains(offset) else {
            throw ChangeLogError(.outOfRange(range), partition: partition, message: "no such offset")
        }
        return TestReader(log: self, partition: partition, offset: offset)
    }

    func range(of partition: TopicPartition) async throws(ChangeLogError) -> LogRange {
        change { state in
            let start = state.starts[partition] ?? 0
            return LogRange(start: start, end: start + Int64(state.records[partition]?.count ?? 0))
        }
    }

    func join(group: String, topic: Topic) async throws(ChangeLogError) -> TestMembership {
        TestMembership(log: self)
    }

    // MARK: Writing

    func enqueue(_ records: [NewRecord], of producer: TestProducer) -> AppendReceipt {
        let slot = Slot<Result<[Int64], ChangeLogError>>()
        let isHolding = change { state in
            state.pending.append(Pending(producer: producer, records: records, slot: slot))
            state.mostPending = max(state.mostPending, state.pending.count)
            return state.isHolding
        }
        enqueues.add()
        if !isHolding { write() }
        return AppendReceipt { await slot.value() }
    }

    private func write(maximum: Int = .max) {
        var written = 0
        while written < maximum, let (slot, result) = change({ state in Self.writeNext(&state) }) {
            slot.fill(result)
            written += 1
        }
    }

    private static func writeNext(
        _ state: inout State
    ) -> (Slot<Result<[Int64], ChangeLogError>>, Result<[Int64], ChangeLogError>)? {
        guard !state.pending.isEmpty else { return nil }
        let append = state.pending.removeFirst()
        if append.producer.hasFailed {
            return (append.slot, .failure(ChangeLogError(.producerFailed, message: "an earlier record failed")))
        }
        if !state.faults.isEmpty, let fault = state.faults.removeFirst() {
            append.producer.fail()
            return (append.slot, .failure(fault))
        }
        let offsets = append.records.map { record in
            let offset = Int64(state.records[record.destination, default: []].count)
            state.records[record.destination, default: []].append(
                LogRecord(offset: offset, time: 0, key: record.key, value: record.value))
            return offset
        }
        return (append.slot, .success(offsets))
    }
}

final class TestProducer: LogProducer {
    private let log: TestLog
    private let failed = Mutex(false)
    private let isClosed = Mutex(false)

    init(log: TestLog) { self.log = log }

    var hasFailed: Bool { failed.withLock { $0 } }

    func fail() { failed.withLock { $0 = true } }

    func enqueue(_ records: [NewRecord]) async throws(ChangeLogError) -> AppendReceipt {
        if hasFailed { throw ChangeLogError(.producerFailed, message: "an earlier record failed") }
        return log.enqueue(records, of: self)
    }

    /// Counted once: a cancelled append closes its producer, too.
    func close() async {
        let isFirst = isClosed.withLock { isClosed in
            defer { isClosed = true }
            return !isClosed
        }
        if isFirst { log.closed.add() }
    }
}

final class TestReader: LogReader {
    private let log: TestLog
    private let partition: TopicPartition
    private let offset: Mutex<Int64>
    private let bell: AsyncStream<Void>

    init(log: TestLog, partition: TopicPartition, offset: Int64) {
        self.log = log
        self.partition = partition
        self.offset = Mutex(offset)
        let (bell, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        self.bell = bell
        log.change { $0.bells.append(continuation) }
    }

    func next(maximumBytes: Int) async throws -> [LogRecord] {
        while true {
            try Task.checkCancellation()
            let records = take(maximumBytes)
            if !records.isEmpty { return records }
            var iterator = bell.makeAsyncIterator()
            if await iterator.next() == nil { throw CancellationError() }
        }
    }

    func close() async { log.closed.add() }

    private func take(_ maximumBytes: Int) -> [LogRecord] {
        offset.withLock { offset in
            let position = offset
            let waiting = log.change { state in
                let start = state.starts[partition] ?? 0
                return Array((state.records[partition] ?? []).dropFirst(Int(position - start)))
            }
            var size = 0
            let taken = waiting.prefix { record in
                defer { size += record.value.count }
                return size < maximumBytes
            }
            offset += Int64(taken.count)
            return Array(taken)
        }
    }
}

final class TestMembership: LogMembership {
    private let log: TestLog

    init(log: TestLog) { self.log = log }

    func run(_ worker: @escaping @Sendable (Assignment) async throws -> Void) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for partition in 0..<log.partitionCount {
                let assignment = assignment(partition)
                group.addTask { try await worker(assignment) }
            }
            while try await group.next() != nil {}
        }
    }

    func leave() async {}

    private func assignment(_ partition: Int) -> Assignment {
        let log = log
        return Assignment(partition: TopicPartition(.uploads, partition)) { () throws(ChangeLogError) in
            log.committed(partition)
        } commit: { (offset) throws(ChangeLogError) in
            let fault = log.change { state -> ChangeLogError? in
                if !state.commitFaults.isEmpty { return state.commitFaults.removeFirst() }
                if !state.forgetsCommits { state.committed[partition] = offset }
                return nil
            }
            log.commits.add()
            if let fault { throw fault }
        }
    }
}
