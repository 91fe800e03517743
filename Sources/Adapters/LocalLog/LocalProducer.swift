import AsyncPrimitives
import ChangeLog
import Synchronization

/// Appends records through the log's one writer; after a failed append all later ones fail.
package final class LocalProducer: LogProducer {
    private let queue: WorkQueue
    private let partitions: LogPartitions
    private let maximumRecordSize: Int
    private let state = ProducerState()

    package init(queue: WorkQueue, partitions: LogPartitions, maximumRecordSize: Int) {
        self.queue = queue
        self.partitions = partitions
        self.maximumRecordSize = maximumRecordSize
    }

    /// Enqueues records behind earlier ones; they become durable together.
    package func enqueue(_ records: [NewRecord]) async throws(ChangeLogError) -> AppendReceipt {
        var indexes: [Int] = []
        indexes.reserveCapacity(records.count)
        for record in records {
            guard let index = partitions.index(of: record.destination) else { throw .unknown(record.destination) }
            guard record.key.count + record.value.count <= maximumRecordSize else {
                throw .tooLarge(record, maximum: maximumRecordSize)
            }
            indexes.append(index)
        }
        let promise = LogPromise<[Int64]>()
        try state.begin()
        do throws(ChangeLogError) {
            try await queue.add(Append(records: records, partitions: indexes, producer: state, promise: promise))
        } catch {
            // The log is closed: nothing follows, and earlier records are still written.
            state.end(failed: false)
            throw error
        }
        return promise.receipt
    }

    /// Rejects further records and waits for the enqueued ones.
    package func close() async { await state.close() }
}

/// Rejects a producer's appends behind a failed one (I1), and lets its closing wait for all.
package final class ProducerState: Sendable {
    private struct State {
        var hasFailed = false
        var isClosed = false
        /// Appends that are enqueued or wait for capacity.
        var unresolved = 0
        /// The callers of `close()`.
        var closers: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    package init() {}

    package var hasFailed: Bool { state.withLock { $0.hasFailed } }

    /// Begins an append, to be ended once with `end(failed:)`.
    func begin() throws(ChangeLogError) {
        let refusal: ChangeLogError? = state.withLock { state in
            if state.hasFailed { return .producerFailed }
            if state.isClosed { return .closed("the producer") }
            state.unresolved += 1
            return nil
        }
        if let refusal { throw refusal }
    }

    func end(failed: Bool) {
        let closers: [CheckedContinuation<Void, Never>] = state.withLock { state in
            state.unresolved -= 1
            if failed { state.hasFailed = true }
            guard state.unresolved == 0 else { return [] }
            defer { state.closers = [] }
            return state.closers
        }
        for closer in closers { closer.resume() }
    }

    /// Rejects further appends and returns when the earlier ones have ended.
    func close() async {
        await withCheckedContinuation { continuation in
            let hasEnded = state.withLock { state in
                state.isClosed = true
                if state.unresolved > 0 { state.closers.append(continuation) }
                return state.unresolved == 0
            }
            if hasEnded { continuation.resume() }
        }
    }
}
