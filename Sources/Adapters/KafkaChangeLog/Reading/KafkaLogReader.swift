import ChangeLog
import Kafka
import Synchronization

/// Reads one partition: takes what its client has fetched, and waits for the client's signal when there is nothing.
package final class KafkaLogReader: LogReader {
    struct Dependencies: Sendable {
        /// The client that fetches the partition, and where it is returned to.
        let lease: FetchClients.Lease
        let clients: FetchClients
        let wakeup: KafkaWakeup
        let calls: BlockingCalls
        /// Whether records with their producer's time are accepted, which the mock cluster of tests needs.
        let acceptsProducersTime: Bool
        /// Reads the range of the partition.
        let range: @Sendable () async throws(ChangeLogError) -> LogRange
        /// Called when the client has stopped fetching the partition.
        let hasClosed: @Sendable () -> Void
    }

    private struct State {
        var isSignalled = false
        var waiting: CheckedContinuation<Void, Never>?
        /// The error that ended the reader.
        var end: ChangeLogError?
        /// The error after the records returned last.
        var failure: KafkaError?
        /// The bytes taken since the last nudge.
        var takenBytes = 0
        var isNudging = false
    }

    private let partition: TopicPartition
    private let dependencies: Dependencies
    private let state = Mutex(State())
    private let fetch = Mutex<KafkaFetch?>(nil)
    private let listener = Mutex<KafkaWakeup.Listener?>(nil)
    private let closing = OneTimeTask()

    /// Creates a reader, which must be closed even if ``begin(_:from:)`` fails.
    init(of partition: TopicPartition, _ dependencies: Dependencies) {
        self.partition = partition
        self.dependencies = dependencies
    }

    /// Begins to fetch.
    func begin(_ topic: String, from offset: Int64) throws(KafkaError) {
        let added = dependencies.wakeup.add { [weak self] in self?.signal() }
        listener.withLock { $0 = added }
        let begun = try KafkaFetch(
            dependencies.lease.service.client, topic: topic, partition: Int32(partition.partition), from: offset,
            wakeup: dependencies.wakeup, listener: added)
        fetch.withLock { $0 = begun }
    }

    /// Returns the next records, at least one; waits for them.
    package func next(maximumBytes: Int) async throws -> [LogRecord] {
        while true {
            try Task.checkCancellation()
            let (end, failure) = state.withLock { state in
                state.isSignalled = false
                return (state.end, state.failure.take())
            }
            if let end { throw end }
            if let failure { throw await explain(failure) }
            let (records, fault) = take(maximumBytes)
            if !records.isEmpty {
                state.withLock { $0.failure = fault }
                nudgeIfNeeded(after: records.reduce(0) { $0 + $1.size })
                return records
            }
            if let fault { throw await explain(fault) }
            await waitForSignal()
        }
    }

    package func close() async { await close(.closed("the reader", partition: partition)) }

    func close(_ error: ChangeLogError) async {
        let waiting = state.withLock { state in
            if state.end?.code != .closed { state.end = error }
            return state.waiting.take()
        }
        waiting?.resume()
        await closing.run { await self.closeOnce() }
    }

    private func closeOnce() async {
        if let fetch = fetch.withLock({ $0.take() }) { await dependencies.calls.runInfallible { fetch.stop() } }
        if let listener = listener.withLock({ $0.take() }) { dependencies.wakeup.remove(listener) }
        await dependencies.clients.giveBack(dependencies.lease)
        dependencies.hasClosed()
    }

    private func signal() {
        let waiting = state.withLock { state in
            state.isSignalled = true
            return state.waiting.take()
        }
        waiting?.resume()
    }

    private func waitForSignal() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = state.withLock { state in
                    if state.isSignalled || state.end != nil || Task.isCancelled { return true }
                    precondition(state.waiting == nil, "only one task calls next at a time")
                    state.waiting = continuation
                    return false
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.waiting.take() }?.resume()
        }
    }

    /// Takes fetched records, and the error that follows them.
    private func take(_ maximumBytes: Int) -> (records: [LogRecord], fault: KafkaError?) {
        var records: [LogRecord] = []
        var fault: KafkaError?
        var bytes = 0
        fetch.withLock { $0 }?.take { message in
            if let error = message.error {
                // The end of the partition is not an error: the reader waits there.
                if error.code == .partitionEnd { return true }
                fault = error
                return false
            }
            let time = message.time
            guard time.isLogAppendTime || dependencies.acceptsProducersTime else {
                fault = KafkaError(.policyViolation, message: Self.timeExplanation)
                return false
            }
            let record = LogRecord(
                offset: message.offset, time: time.milliseconds * 1000, key: message.key, value: message.value)
            records.append(record)
            bytes += record.size
            return bytes < maximumBytes
        }
        return (records, fault)
    }

    /// Makes the client fetch after half of its queue was taken: it may have stopped because the queue was full.
    private func nudgeIfNeeded(after size: Int) {
        let isDue = state.withLock { state in
            state.takenBytes += size
            guard state.takenBytes >= dependencies.clients.queueBytes / 2, !state.isNudging else { return false }
            state.takenBytes = 0
            state.isNudging = true
            return true
        }
        guard isDue, let fetch = fetch.withLock({ $0 }) else { return }
        // At most one at a time.
        Task {
            // An error does not matter: sending the request is what wakes the client.
            await dependencies.calls.runInfallible {
                _ = Result { () throws(KafkaError) in try fetch.nudge(milliseconds: 1000) }
            }
            state.withLock { $0.isNudging = false }
        }
    }

    private static let timeExplanation = """
        the record has its producer's time: set message.timestamp.type=LogAppendTime for every topic and start with a new \
        epoch
        """

    /// Translates an error of the partition; one that the reader cannot recover from ends it.
    private func explain(_ error: KafkaError) async -> any Error {
        let explained: ChangeLogError
        switch error.code {
        case .offsetOutOfRange, .noOffsetReset:
            do throws(ChangeLogError) {
                let range = try await dependencies.range()
                explained = ChangeLogError(
                    .outOfRange(range), partition: partition,
                    message: "the next record was deleted, the log holds \(range.start) to \(range.end)")
            } catch {
                // The next call reads the range again.
                state.withLock { $0.failure = KafkaError(.offsetOutOfRange, message: "") }
                return error
            }
        case .policyViolation: explained = ChangeLogError(.other, partition: partition, message: error.message)
        default: return ChangeLogError(error, partition: partition, needing: .read)
        }
        state.withLock { state in
            if state.end == nil { state.end = explained }
        }
        return explained
    }
}
