import AsyncPrimitives
import ChangeLog
import LocalLog
import Synchronization

/// Writes the queue in one task, unless the test pauses or fails it.
actor MemoryWriter {
    private let partitions: LogPartitions
    private let tails: [PartitionTail]
    /// The committed offsets of each group that ever joined, by partition.
    private(set) var offsets: [GroupName: [Int: Int64]]
    private let queue: WorkQueue
    private let faults: WriteFaults
    private let clock: @Sendable () -> Int64

    init(
        partitions: LogPartitions, tails: [PartitionTail], offsets: [GroupName: [Int: Int64]], queue: WorkQueue,
        faults: WriteFaults, clock: @escaping @Sendable () -> Int64
    ) {
        self.partitions = partitions
        self.tails = tails
        self.offsets = offsets
        self.queue = queue
        self.faults = faults
        self.clock = clock
    }

    /// Runs until the queue is closed and empty.
    func serve() async {
        while let work = await queue.next() {
            await faults.waitWhilePaused()
            let time = clock()
            for append in work.appends { write(append, time: time) }
            for request in work.requests { request.promise.fulfilOnce(answer(request.action)) }
            queue.finish(work.appends)
        }
    }

    private func write(_ append: Append, time: Int64) {
        if faults.hasCrashed { return append.resolve(.failure(.closed("the log"))) }
        if append.isBlocked { return append.resolve(.failure(.producerFailed)) }
        let fault = faults.next()
        if let fault, !fault.isStored { return append.resolve(.failure(fault.error)) }
        var offsets: [Int64] = []
        var records: [Int: [LogRecord]] = [:]
        for (record, index) in zip(append.records, append.partitions) {
            let offset = tails[index].range.end + Int64(records[index]?.count ?? 0)
            records[index, default: []].append(
                LogRecord(offset: offset, time: time, key: record.key, value: record.value))
            offsets.append(offset)
        }
        // In the order of the partitions, so that readers are woken in the same order each time.
        for (index, records) in records.sorted(by: { $0.key < $1.key }) { tails[index].append(records) }
        append.resolve(fault.map { .failure($0.error) } ?? .success(offsets))
    }

    private func answer(_ action: LogRequest.Action) -> Result<Int64?, ChangeLogError> {
        if faults.hasCrashed { return .failure(.closed("the log")) }
        switch action {
        case .register(let group): offsets[group] = offsets[group] ?? [:]
        case .load(let group, let partition): return .success(offsets[group]?[partition])
        case .store(let group, let partition, let offset, let isCurrent):
            guard isCurrent() else { return .failure(.fenced(TopicPartition(group.topic, partition))) }
            offsets[group, default: [:]][partition] = offset
        case .remove(let topic, let time, let floors, let consumers): remove(topic, before: time, floors, consumers)
        }
        return .success(nil)
    }

    private func remove(_ topic: Topic, before time: Int64, _ floors: [Int: Int64], _ consumers: [GroupName]) {
        var offsets = offsets
        for consumer in consumers where offsets[consumer] == nil { offsets[consumer] = [:] }
        for (index, partition) in partitions.all.enumerated() where partition.topic == topic {
            let tail = tails[index]
            // A group without a committed offset starts at 0.
            let consumed = offsets.filter { $0.key.topic == topic }.map { $0.value[partition.partition] ?? 0 }.min()
            let oldEnd = tail.newest.first { $0.time >= time }?.offset ?? .max
            let floor = floors[partition.partition] ?? .max
            let start = min(oldEnd, consumed ?? .max, floor, tail.range.end - 1)
            if start > tail.range.start { tail.setStart(start) }
        }
    }
}

/// The pauses, failures and crash that a test asks the writer for.
final class WriteFaults: Sendable {
    struct Fault: Sendable {
        let error: ChangeLogError
        let isStored: Bool
    }

    private struct State {
        var isPaused = false
        var hasCrashed = false
        var faults: [Fault] = []
        /// The writer, while it waits for the end of a pause.
        var writer: CheckedContinuation<Void, Never>?
    }

    private let state = Mutex(State())

    var hasCrashed: Bool { state.withLock { $0.hasCrashed } }

    func pause() { state.withLock { $0.isPaused = true } }

    func resume() {
        let writer = state.withLock { state in
            state.isPaused = false
            return state.writer.take()
        }
        writer?.resume()
    }

    func crash() { state.withLock { $0.hasCrashed = true } }

    func add(_ fault: Fault) { state.withLock { $0.faults.append(fault) } }

    /// The fault of the next append.
    func next() -> Fault? { state.withLock { $0.faults.isEmpty ? nil : $0.faults.removeFirst() } }

    func waitWhilePaused() async {
        await withCheckedContinuation { continuation in
            let isPaused = state.withLock { state in
                if state.isPaused { state.writer = continuation }
                return state.isPaused
            }
            if !isPaused { continuation.resume() }
        }
    }
}
