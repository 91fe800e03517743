import ChangeLog
import LocalLog

/// Stores what is enqueued, in one task, as far as the test lets it.
actor MemoryWriter {
    private let partitions: LogPartitions
    private let tails: [PartitionTail]
    /// The offsets of each group that ever joined, by partition.
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

    /// Works until the queue is closed and empty.
    func serve() async {
        while let work = await queue.next() {
            await faults.waitWhilePaused()
            let time = clock()
            for append in work.appends { write(append, time: time) }
            for request in work.requests { request.promise.fulfil(answer(request.action)) }
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
        for (record, place) in zip(append.records, append.partitions) {
            let offset = tails[place].range.end + Int64(records[place]?.count ?? 0)
            records[place, default: []].append(
                LogRecord(offset: offset, time: time, key: record.key, value: record.value))
            offsets.append(offset)
        }
        // In the order of the partitions: whoever reads two of them is woken in the same order each time.
        for (place, records) in records.sorted(by: { $0.key < $1.key }) { tails[place].append(records) }
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
        case .remove(let topic, let time, let floors): remove(topic, before: time, floors)
        }
        return .success(nil)
    }

    private func remove(_ topic: Topic, before time: Int64, _ floors: [Int: Int64]) {
        for (place, partition) in partitions.all.enumerated() where partition.topic == topic {
            let tail = tails[place]
            // A group that has not committed yet has worked on nothing.
            let consumed = offsets.filter { $0.key.topic == topic }.map { $0.value[partition.partition] ?? 0 }.min()
            let oldEnd = tail.newest.first { $0.time >= time }?.offset ?? .max
            let floor = floors[partition.partition] ?? .max
            let start = min(oldEnd, consumed ?? .max, floor, tail.range.end - 1)
            if start > tail.range.start { tail.setStart(start) }
        }
    }
}
