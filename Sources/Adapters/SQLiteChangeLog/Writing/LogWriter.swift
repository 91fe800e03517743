import AsyncPrimitives
import ChangeLog
import LocalLog
import Metrics
import SQLite
import ThreadExecutor

/// Writes what the queue gives for a transaction, with one fsync.
///
/// One task calls ``serve()`` once, on the writer's thread, where nothing else runs.
actor LogWriter {
    private nonisolated let thread: DedicatedThread
    private nonisolated let queue: WorkQueue
    private nonisolated let counters: WriteCounters
    private nonisolated let metrics: SQLiteLogMetrics
    private let clock: @Sendable () -> Int64
    let connection: Connection
    let partitions: LogPartitions
    let tails: [PartitionTail]
    let reserve: Reserve
    let groups: LogFileGroups
    /// The next offset of each partition, by its index.
    private var ends: [Int64]
    private var inserts: [InsertStatement?]
    /// Unfinished removals, in the order of arrival.
    var removals: [Removal] = []

    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    /// A class, since an array cannot hold a noncopyable value.
    private final class InsertStatement {
        var statement: Statement

        init(_ statement: consuming Statement) { self.statement = statement }
    }

    private struct Written {
        /// Of each append.
        var offsets: [[Int64]] = []
        /// Of each partition, by its index.
        var records: [[LogRecord]]
        /// Of each request.
        var results: [Result<Int64?, ChangeLogError>] = []
    }

    init(
        file: sending LogFile, thread: DedicatedThread, queue: WorkQueue, tails: [PartitionTail],
        counters: WriteCounters, reserve: Reserve, metrics: SQLiteLogMetrics, clock: @escaping @Sendable () -> Int64
    ) {
        self.thread = thread
        self.queue = queue
        self.tails = tails
        self.counters = counters
        self.metrics = metrics
        self.reserve = reserve
        self.clock = clock
        connection = file.connection
        partitions = file.partitions
        groups = LogFileGroups(connection: file.connection)
        ends = file.ranges.map(\.end)
        inserts = Array(repeating: nil, count: ends.count)
    }

    /// Writes until the queue is closed and empty, then closes the file.
    func serve() async -> Result<Void, ChangeLogError> {
        while let work = await queue.next(isWaiting: removals.isEmpty) {
            if !work.isEmpty {
                write(startingRemovals(of: work))
                queue.finish(work.appends)
            }
            // One slice at a time, so that appends wait no longer than that.
            removeSlice()
        }
        for removal in removals { removal.promise.fulfilOnce(.failure(.closed("the log"))) }
        inserts = []
        return Result { () throws(ChangeLogError) in
            try ChangeLogError.translating(nil) { try connection.close() }
        }
    }

    /// Moves the removals out of the work, since they have transactions of their own.
    private func startingRemovals(of work: LogWork) -> LogWork {
        var work = work
        work.requests.removeAll { request in
            guard case .remove(let topic, let time, let floors, let consumers) = request.action else { return false }
            let indexes = partitions.all.indices.filter { partitions.all[$0].topic == topic }
            removals.append(
                Removal(
                    before: time, floors: floors, consumers: consumers, partitions: indexes, promise: request.promise))
            return true
        }
        return work
    }

    /// Writes the work in one transaction, and resolves it.
    ///
    /// If the storage is full, it writes halves, down to the single append that does not fit, which alone fails.
    private func write(_ work: LogWork) {
        var work = work
        reject(&work.appends)
        if work.isEmpty { return }
        do {
            let watch = Stopwatch()
            var beforeCommit = 0
            let written = try connection.transaction(.immediate) {
                let written = try insert(work)
                beforeCommit = watch.nanoseconds
                return written
            }
            metrics.record(work, watch, beforeCommit: beforeCommit)
            publish(written, work)
        } catch {
            let failure = ChangeLogError(error, partition: nil)
            metrics.recordFailure()
            if failure.code == .storageFull, let (first, second) = work.halves {
                write(first)
                write(second)
                return
            }
            for append in work.appends { append.resolve(.failure(failure)) }
            for request in work.requests { request.promise.fulfilOnce(.failure(failure)) }
        }
    }

    /// Passes durable records to readers, then resolves appends and requests.
    private func publish(_ written: Written, _ work: LogWork) {
        for (index, records) in written.records.enumerated() {
            guard let last = records.last else { continue }
            ends[index] = last.offset + 1
            tails[index].append(records)
        }
        counters.add(work)
        for (append, offsets) in zip(work.appends, written.offsets) { append.resolve(.success(offsets)) }
        for (request, result) in zip(work.requests, written.results) { request.promise.fulfilOnce(result) }
    }

    private func insert(_ work: LogWork) throws -> Written {
        var written = Written(records: Array(repeating: [], count: ends.count))
        written.offsets.reserveCapacity(work.appends.count)
        var next = ends
        let time = clock()
        for append in work.appends {
            var offsets: [Int64] = []
            offsets.reserveCapacity(append.records.count)
            for (record, index) in zip(append.records, append.partitions) {
                let offset = next[index]
                next[index] += 1
                try insert(record, into: index, at: offset, time: time)
                written.records[index].append(
                    LogRecord(offset: offset, time: time, key: record.key, value: record.value))
                offsets.append(offset)
            }
            written.offsets.append(offsets)
        }
        for request in work.requests { written.results.append(try groups.handle(request.action)) }
        return written
    }

    private func insert(_ record: NewRecord, into index: Int, at offset: Int64, time: Int64) throws {
        let insert: InsertStatement
        if let known = inserts[index] {
            insert = known
        } else {
            let table = LogFile.table(of: record.destination)
            insert = InsertStatement(
                try connection.prepare("INSERT INTO \(table) (place, time, key, value) VALUES (?1, ?2, ?3, ?4)"))
            inserts[index] = insert
        }
        try insert.statement.bind(integer: offset, at: 1)
        try insert.statement.bind(integer: time, at: 2)
        try insert.statement.bind(blob: record.key, at: 3)
        try insert.statement.run(borrowingBlob: record.value.span.bytes, at: 4)
    }
}
