import ChangeLog
import LocalLog
import Metrics
import SQLite
import ThreadExecutor

/// Writes the log's file: everything that waits in one transaction, one fsync for all of it.
///
/// One task calls ``serve()`` once, on the writer's thread; nothing else runs there.
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
    private let groups: LogFileGroups
    /// The next offset of each partition, at its place.
    private var ends: [Int64]
    private var inserts: [InsertStatement?]
    /// Removals that are not finished, in the order of their arrival.
    var removals: [Removal] = []

    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    /// A prepared insertion into one partition's table.
    private final class InsertStatement {
        var statement: Statement

        init(_ statement: consuming Statement) { self.statement = statement }
    }

    /// What a transaction wrote.
    private struct Written {
        /// Each append's offsets.
        var offsets: [[Int64]] = []
        /// The records of each partition, at its place.
        var records: [[LogRecord]]
        /// What each request is answered.
        var answers: [Result<Int64?, ChangeLogError>] = []
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
                write(begun(work))
                queue.finish(work.appends)
            }
            // One slice at a time, so that appends wait for no more than that.
            removeSlice()
        }
        for removal in removals { removal.promise.fulfil(.failure(.closed("the log"))) }
        inserts = []
        return Result { () throws(ChangeLogError) in
            try ChangeLogError.translating(nil) { try connection.close() }
        }
    }

    /// Takes the removals out of what waits: they have transactions of their own.
    private func begun(_ work: LogWork) -> LogWork {
        var work = work
        work.requests.removeAll { request in
            guard case .remove(let topic, let time, let floors) = request.action else { return false }
            let places = partitions.all.indices.filter { partitions.all[$0].topic == topic }
            removals.append(Removal(before: time, floors: floors, places: places, promise: request.promise))
            return true
        }
        return work
    }

    /// Writes all of it in one transaction, and resolves it.
    ///
    /// When there is no room for all, the parts are tried, down to the append that has none: it alone fails.
    private func write(_ work: LogWork) {
        var work = work
        refuse(&work.appends)
        if work.isEmpty { return }
        do {
            let watch = Stopwatch()
            var beforeCommit = 0
            let written = try connection.transaction(.immediate) {
                let written = try insert(work)
                beforeCommit = watch.nanoseconds
                return written
            }
            metrics.note(work, watch, beforeCommit: beforeCommit)
            publish(written, work)
        } catch {
            let failure = ChangeLogError(error, partition: nil)
            metrics.noteFailure()
            if failure.code == .storageFull, let (first, second) = work.halves {
                write(first)
                write(second)
                return
            }
            for append in work.appends { append.resolve(.failure(failure)) }
            for request in work.requests { request.promise.fulfil(.failure(failure)) }
        }
    }

    /// Shows to readers, and then to producers, what is durable now.
    private func publish(_ written: Written, _ work: LogWork) {
        for (place, records) in written.records.enumerated() {
            guard let last = records.last else { continue }
            ends[place] = last.offset + 1
            tails[place].append(records)
        }
        counters.add(work)
        for (append, offsets) in zip(work.appends, written.offsets) { append.resolve(.success(offsets)) }
        for (request, answer) in zip(work.requests, written.answers) { request.promise.fulfil(answer) }
    }

    private func insert(_ work: LogWork) throws -> Written {
        var written = Written(records: Array(repeating: [], count: ends.count))
        written.offsets.reserveCapacity(work.appends.count)
        var next = ends
        let time = clock()
        for append in work.appends {
            var offsets: [Int64] = []
            offsets.reserveCapacity(append.records.count)
            for (record, place) in zip(append.records, append.places) {
                let offset = next[place]
                next[place] += 1
                try insert(record, into: place, at: offset, time: time)
                written.records[place].append(
                    LogRecord(offset: offset, time: time, key: record.key, value: record.value))
                offsets.append(offset)
            }
            written.offsets.append(offsets)
        }
        for request in work.requests { written.answers.append(try groups.answer(request.action)) }
        return written
    }

    private func insert(_ record: NewRecord, into place: Int, at offset: Int64, time: Int64) throws {
        let insert: InsertStatement
        if let known = inserts[place] {
            insert = known
        } else {
            let table = LogFile.table(of: record.destination)
            insert = InsertStatement(
                try connection.prepare("INSERT INTO \(table) (place, time, key, value) VALUES (?1, ?2, ?3, ?4)"))
            inserts[place] = insert
        }
        try insert.statement.bind(integer: offset, at: 1)
        try insert.statement.bind(integer: time, at: 2)
        try insert.statement.bind(blob: record.key, at: 3)
        try insert.statement.run(borrowingBlob: record.value.span.bytes, at: 4)
    }
}
