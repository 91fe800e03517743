import AsyncPrimitives
import ChangeLog
import Synchronization
import TestSignals

/// A log of `uploads` in memory that can be told to fail or to hold appends back.
final class MemoryLog: ChangeLog {
    private struct State {
        var records: [NewRecord] = []
        var failure: ChangeLogError?
        var producers = 0
        var open = 0
        var gate: LogPromise<[Int64]>?
    }

    let partitionCount: Int
    let maximumRecordSize: Int
    private let state = Mutex(State())
    /// One for each append that arrived.
    let arrivals = Signal<Void>()

    init(partitionCount: Int = 4, maximumRecordSize: Int = 8 << 20) {
        self.partitionCount = partitionCount
        self.maximumRecordSize = maximumRecordSize
    }

    /// What was appended, in order.
    var records: [NewRecord] { state.withLock(\.records) }
    /// How many producers were made.
    var producers: Int { state.withLock(\.producers) }
    /// How many of them are not closed.
    var openProducers: Int { state.withLock(\.open) }

    /// Makes every append fail, or none.
    func fail(with error: ChangeLogError?) { state.withLock { $0.failure = error } }

    /// Holds appends back until `release`.
    func hold() { state.withLock { $0.gate = LogPromise<[Int64]>() } }

    func release() {
        let gate = state.withLock { state in
            defer { state.gate = nil }
            return state.gate
        }
        gate?.fulfil(.success([]))
    }

    func producer() async throws(ChangeLogError) -> Producer {
        state.withLock {
            $0.producers += 1
            $0.open += 1
        }
        return Producer(log: self)
    }

    fileprivate func append(_ records: [NewRecord]) async -> Result<[Int64], ChangeLogError> {
        arrivals.send(())
        if let gate = state.withLock(\.gate) { _ = await Result.capturing { try await gate.receipt.offsets() } }
        return state.withLock { state in
            if let failure = state.failure { return .failure(failure) }
            state.records += records
            return .success(records.indices.map { Int64(state.records.count - records.count + $0) })
        }
    }

    fileprivate func closed() { state.withLock { $0.open -= 1 } }

    final class Producer: LogProducer {
        private let log: MemoryLog
        private let hasFailed = Mutex(false)

        init(log: MemoryLog) { self.log = log }

        func enqueue(_ records: [NewRecord]) async throws(ChangeLogError) -> AppendReceipt {
            if hasFailed.withLock({ $0 }) { throw ChangeLogError(.producerFailed, message: "replace it") }
            let result = await log.append(records)
            if case .failure = result { hasFailed.withLock { $0 = true } }
            return AppendReceipt { result }
        }

        func close() async { log.closed() }
    }

    // The gateway reads nothing.
    struct Reader: LogReader {
        func next(maximumBytes: Int) async throws -> [LogRecord] { throw ChangeLogError(.closed, message: "no reader") }
        func close() async {}
    }

    struct Membership: LogMembership {
        func run(_ worker: @escaping @Sendable (Assignment) async throws -> Void) async throws {}
        func leave() async {}
    }

    func reader(of partition: TopicPartition, from offset: Int64) async throws(ChangeLogError) -> Reader { Reader() }
    func range(of partition: TopicPartition) async throws(ChangeLogError) -> LogRange { LogRange(start: 0, end: 0) }
    func join(group: String, topic: Topic) async throws(ChangeLogError) -> Membership { Membership() }
}
