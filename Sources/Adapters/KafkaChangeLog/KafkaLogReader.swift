import ChangeLog
import Kafka
import Synchronization

/// Reads one partition: takes what the client has fetched, and is rung when there is more.
package final class KafkaLogReader: LogReader {
    private struct State {
        var hasRung = false
        var waiting: CheckedContinuation<Void, Never>?
        /// Why nothing more will come.
        var end: ChangeLogError?
        /// What stands behind the records taken last.
        var failure: KafkaError?
        /// The size of what was taken since the client was made to look for room.
        var taken = 0
        var isNudging = false
    }

    private let partition: TopicPartition
    private let place: FetchClients.Place
    private let clients: FetchClients
    private let bell: KafkaWakeup
    private let calls: BlockingCalls
    private let isTakingProducersTime: Bool
    private let range: @Sendable () async throws(ChangeLogError) -> LogRange
    private let hasClosed: @Sendable () -> Void
    private let state = Mutex(State())
    private let fetch = Mutex<KafkaFetch?>(nil)
    private let ring = Mutex<KafkaWakeup.Number?>(nil)
    private let closing = Mutex<Task<Void, Never>?>(nil)

    /// Makes a reader, which must be closed whatever becomes of ``begin(_:from:)``.
    ///
    /// - Parameters:
    ///   - range: asks what the partition holds.
    ///   - hasClosed: told when the client has let go of the partition.
    init(
        of partition: TopicPartition, place: FetchClients.Place, clients: FetchClients, bell: KafkaWakeup,
        calls: BlockingCalls, isTakingProducersTime: Bool,
        range: @escaping @Sendable () async throws(ChangeLogError) -> LogRange,
        hasClosed: @escaping @Sendable () -> Void
    ) {
        self.partition = partition
        self.place = place
        self.clients = clients
        self.bell = bell
        self.calls = calls
        self.isTakingProducersTime = isTakingProducersTime
        self.range = range
        self.hasClosed = hasClosed
    }

    /// Begins to fetch.
    func begin(_ topic: String, from offset: Int64) throws(KafkaError) {
        let number = bell.add { [weak self] in self?.awake() }
        ring.withLock { $0 = number }
        let begun = try KafkaFetch(
            place.service.client, topic: topic, partition: Int32(partition.partition), from: offset, bell: bell,
            ring: number)
        fetch.withLock { $0 = begun }
    }

    /// The next records, at least one.
    package func next(maximumBytes: Int) async throws -> [LogRecord] {
        while true {
            try Task.checkCancellation()
            let (end, failure) = state.withLock { state in
                state.hasRung = false
                return (state.end, state.failure.take())
            }
            if let end { throw end }
            if let failure { throw await explain(failure) }
            let (records, fault) = take(maximumBytes)
            if !records.isEmpty {
                state.withLock { $0.failure = fault }
                fetchOn(records.reduce(0) { $0 + $1.size })
                return records
            }
            if let fault { throw await explain(fault) }
            await wait()
        }
    }

    /// Ends the reader.
    package func close() async { await close(.closed("the reader", partition: partition)) }

    func close(_ error: ChangeLogError) async {
        let waiting = state.withLock { state in
            if state.end?.code != .closed { state.end = error }
            return state.waiting.take()
        }
        waiting?.resume()
        let closing = closing.withLock { closing in
            if let closing { return closing }
            let begun = Task { await closeOnce() }
            closing = begun
            return begun
        }
        await closing.value
    }

    private func closeOnce() async {
        if let fetch = fetch.withLock({ $0.take() }) { await calls.visit { fetch.stop() } }
        if let ring = ring.withLock({ $0.take() }) { bell.remove(ring) }
        await clients.give(place)
        hasClosed()
    }

    /// Has a waiting ``next(maximumBytes:)`` look again.
    private func awake() {
        let waiting = state.withLock { state in
            state.hasRung = true
            return state.waiting.take()
        }
        waiting?.resume()
    }

    private func take(_ maximumBytes: Int) -> (records: [LogRecord], fault: KafkaError?) {
        var records: [LogRecord] = []
        var fault: KafkaError?
        var bytes = 0
        fetch.withLock { $0 }?.take { message in
            if let error = message.error {
                // The end of the partition is where a reader waits.
                if error.code == .partitionEnd { return true }
                fault = error
                return false
            }
            let time = message.time
            guard time.isLogAppendTime || isTakingProducersTime else {
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

    /// Has the client fetch on when half of what it may hold was taken: it may have stopped, with the queue full.
    private func fetchOn(_ size: Int) {
        let isDue = state.withLock { state in
            state.taken += size
            guard state.taken >= clients.queueBytes / 2, !state.isNudging else { return false }
            state.taken = 0
            state.isNudging = true
            return true
        }
        guard isDue, let fetch = fetch.withLock({ $0 }) else { return }
        // One at a time.
        Task {
            // An answer, or none, is as good: the question counts.
            await calls.visit { _ = Result { () throws(KafkaError) in try fetch.nudge(milliseconds: 1000) } }
            state.withLock { $0.isNudging = false }
        }
    }

    private static let timeExplanation = """
        the record has its producer's time: set message.timestamp.type=LogAppendTime for every topic and make the history \
        anew
        """

    /// What an error of the partition means; one that ends the reading is kept.
    private func explain(_ error: KafkaError) async -> any Error {
        let explained: ChangeLogError
        switch error.code {
        case .offsetOutOfRange, .noOffsetReset:
            do throws(ChangeLogError) {
                let range = try await range()
                explained = ChangeLogError(
                    .outOfRange(range), partition: partition,
                    message: "the next record is gone, the log holds \(range.start) to \(range.end)")
            } catch {
                // The range can be asked for again.
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

    private func wait() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = state.withLock { state in
                    if state.hasRung || state.end != nil || Task.isCancelled { return true }
                    precondition(state.waiting == nil, "a reader is asked for one thing at a time")
                    state.waiting = continuation
                    return false
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.waiting.take() }?.resume()
        }
    }
}
