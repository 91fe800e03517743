import AsyncPrimitives
import ChangeLog
import MemoryChangeLog

/// The log as one process sees it: requests take time, some fail, and those of a dead process never arrive.
struct SimulatedLog: ChangeLog {
    let world: World
    let process: SimulatedProcess

    var partitionCount: Int { world.log.partitionCount }
    var maximumRecordSize: Int { world.log.maximumRecordSize }

    func producer() async throws(ChangeLogError) -> SimulatedProducer {
        try await request()
        return SimulatedProducer(try await world.log.producer(), self)
    }

    func reader(of partition: TopicPartition, from offset: Int64) async throws(ChangeLogError) -> SimulatedReader {
        try await request(partition)
        return SimulatedReader(inner: try await world.log.reader(of: partition, from: offset), log: self)
    }

    func range(of partition: TopicPartition) async throws(ChangeLogError) -> LogRange {
        try await request(partition)
        return try await world.log.range(of: partition)
    }

    func join(group: String, topic: Topic) async throws(ChangeLogError) -> SimulatedMembership {
        try await request()
        return SimulatedMembership(world.group(group, of: topic), process, world)
    }

    /// Delays or fails a request to the log.
    func request(_ partition: TopicPartition? = nil) async throws(ChangeLogError) {
        await world.delay(process)
        try requireLife()
        if world.faults.strikes(.request) {
            world.record("\(process.name): a request to the log fails")
            throw ChangeLogError(
                .inputOutput, partition: partition, message: "the log did not answer", isRetriable: true)
        }
    }

    func requireLife() throws(ChangeLogError) { if !process.isAlive { throw .closed("the process") } }
}

/// Sends records one after the other, like a client with a queue: what it has not sent is lost with its process, and
/// acknowledgements arrive late.
final class SimulatedProducer: LogProducer, @unchecked Sendable {
    // Unchecked: used on the run's thread alone.
    private let inner: LocalProducer
    private let log: SimulatedLog
    private var waiting: [(records: [NewRecord], promise: LogPromise<[Int64]>)] = []
    private var isSending = false
    private var unresolved = 0
    private var hasFailed = false
    private var isClosed = false
    private var closers: [CheckedContinuation<Void, Never>] = []

    init(_ inner: LocalProducer, _ log: SimulatedLog) {
        self.inner = inner
        self.log = log
    }

    func enqueue(_ records: [NewRecord]) async throws(ChangeLogError) -> AppendReceipt {
        try log.requireLife()
        if hasFailed { throw .producerFailed }
        if isClosed { throw .closed("the producer") }
        for record in records {
            guard (0..<log.partitionCount).contains(record.destination.partition) else {
                throw .unknown(record.destination)
            }
            guard record.key.count + record.value.count <= log.maximumRecordSize else {
                throw .tooLarge(record, maximum: log.maximumRecordSize)
            }
        }
        let promise = LogPromise<[Int64]>()
        waiting.append((records, promise))
        unresolved += 1
        if !isSending {
            isSending = true
            Task { await self.send() }
        }
        return promise.receipt
    }

    func close() async {
        isClosed = true
        if unresolved > 0 { await withCheckedContinuation { closers.append($0) } }
        await inner.close()
    }

    private func send() async {
        while !waiting.isEmpty {
            await log.world.delay(log.process)
            let (records, promise) = waiting.removeFirst()
            guard log.process.isAlive else {
                resolve(promise, .failure(.closed("the process")))
                continue
            }
            do throws(ChangeLogError) {
                let receipt = try await inner.enqueue(records)
                Task { await self.acknowledge(receipt, promise) }
            } catch {
                resolve(promise, .failure(error))
            }
        }
        isSending = false
    }

    private func acknowledge(_ receipt: AppendReceipt, _ promise: LogPromise<[Int64]>) async {
        let result: Result<[Int64], ChangeLogError>
        do throws(ChangeLogError) { result = .success(try await receipt.offsets()) } catch { result = .failure(error) }
        await log.world.delay(log.process)
        resolve(promise, log.process.isAlive ? result : .failure(.closed("the process")))
    }

    private func resolve(_ promise: LogPromise<[Int64]>, _ result: Result<[Int64], ChangeLogError>) {
        if case .failure = result { hasFailed = true }
        promise.fulfilOnce(result)
        unresolved -= 1
        if unresolved == 0 {
            for closer in closers { closer.resume() }
            closers = []
        }
    }
}

struct SimulatedReader: LogReader {
    let inner: LocalReader
    let log: SimulatedLog

    func next(maximumBytes: Int) async throws -> [LogRecord] {
        await log.world.delay(log.process)
        try Task.checkCancellation()
        try log.requireLife()
        if log.world.faults.strikes(.request) {
            throw ChangeLogError(.inputOutput, message: "the log did not answer", isRetriable: true)
        }
        let records = try await inner.next(maximumBytes: maximumBytes)
        // A process that died meanwhile gets nothing.
        try log.requireLife()
        return records
    }

    func close() async { await inner.close() }
}
