import ChangeLog
import Observability
import SyncModel
import Synchronization

/// Appends batches to `uploads`.
///
/// It has one producer of the log at a time. A failed producer rejects all further appends, so it is replaced (I1).
final class UploadProducer<Log: ChangeLog>: Sendable {
    private typealias CreationResult = Result<Log.Producer, ChangeLogError>

    private struct State {
        /// The creation of the current producer, which concurrent appends share.
        var producer: Task<CreationResult, Never>?
        /// Counts producers.
        var generation = 0
        var isClosed = false
        /// Why appends fail, until one succeeds; appends rejected by the failed producer report this cause.
        var failure: ChangeLogError?
        /// The time of the last failed append.
        var failedAt = Duration.zero
        /// The partitions whose lag is too long.
        var lagging: Set<Int> = []
    }

    private let log: Log
    private let logger: Logger
    private let partitioning: Partitioning
    private let clock: GatewayClock
    private let state = Mutex(State())

    init(log: Log, history: History, logger: Logger, clock: GatewayClock) {
        self.log = log
        self.logger = logger
        self.clock = clock
        partitioning = Partitioning(count: history.partitions)
    }

    /// The partition of a caller's uploads and of its own data.
    func partition(of caller: SyncID) -> Int { partitioning.partition(of: caller) }

    /// Appends the record of a batch; returns when it is durable (I1).
    func append(_ message: [UInt8], of caller: SyncID) async throws(ChangeLogError) -> UploadReference {
        let destination = TopicPartition(.uploads, partition(of: caller))
        let record = NewRecord(to: destination, key: Array(caller.text.utf8), value: message)
        let size = record.key.count + record.value.count
        guard size <= log.maximumRecordSize else {
            throw ChangeLogError(
                .recordTooLarge(maximum: log.maximumRecordSize), partition: destination,
                message: "the record has \(size) bytes, the log accepts at most \(log.maximumRecordSize)")
        }
        let (creation, generation) = try current()
        do throws(ChangeLogError) {
            let offsets = try await creation.value.get().append([record])
            guard let offset = offsets.first else {
                throw ChangeLogError(
                    .other, partition: destination, message: "the log returned no offset for the record")
            }
            recordSuccess()
            return UploadReference(partition: destination.partition, offset: offset)
        } catch {
            let cause = recordFailure(error)
            await discard(creation, generation)
            throw cause
        }
    }

    /// How long brokers may take for what is in flight when the gateway stops: nobody waits for its acknowledgement any more.
    private static var closeLimit: Duration { .seconds(5) }

    /// Accepts no more appends, and waits for those in flight.
    func close() async {
        let creation = state.withLock { state in
            state.isClosed = true
            return state.producer.take()
        }
        if case .success(let producer)? = await creation?.value { await producer.close(within: Self.closeLimit) }
    }

    private func current() throws(ChangeLogError) -> (Task<CreationResult, Never>, generation: Int) {
        let current: (Task<CreationResult, Never>, Int)? = state.withLock { state in
            if state.isClosed { return nil }
            if let producer = state.producer { return (producer, state.generation) }
            // In a task of its own, because several appends wait for it and cancelling the first must not end it.
            let log = log
            let created = Task { () async -> CreationResult in
                do throws(ChangeLogError) { return .success(try await log.producer()) } catch { return .failure(error) }
            }
            state.producer = created
            state.generation += 1
            return (created, state.generation)
        }
        guard let current else { throw ChangeLogError(.closed, message: "the gateway is stopping") }
        return current
    }

    private func discard(_ creation: Task<CreationResult, Never>, _ generation: Int) async {
        let isCurrent = state.withLock { state in
            guard state.producer != nil, state.generation == generation else { return false }
            state.producer = nil
            return true
        }
        if isCurrent, case .success(let producer) = await creation.value { await producer.close() }
    }

    /// Logs when the lag of a partition exceeds its limit, and when it no longer does.
    func recordLag(_ lag: Duration, of partition: Int, isTooLong: Bool) {
        let isNews = state.withLock { state in
            isTooLong ? state.lagging.insert(partition).inserted : state.lagging.remove(partition) != nil
        }
        guard isNews else { return }
        if isTooLong {
            logger.warning(
                "Uploads of a partition are refused: its lag exceeds max-lag",
                [.partition: .integer(partition), .duration: .duration(lag)])
        } else {
            logger.notice("Uploads of a partition are accepted again", [.partition: .integer(partition)])
        }
    }

    /// Returns the cause of the failure: the error that made the producer fail.
    private func recordFailure(_ error: ChangeLogError) -> ChangeLogError {
        let now = clock.now()
        let (cause, isNews) = state.withLock { state in
            let known = state.failure
            if known == nil || error.code != .producerFailed { state.failure = error }
            state.failedAt = now
            return (state.failure ?? error, known == nil && !state.isClosed)
        }
        if isNews { logger.warning("Uploads cannot be appended", error: cause) }
        return cause
    }

    /// Why appends failed recently; `nil` if none did.
    ///
    /// A failure expires, because a load balancer that sends no more requests because of it could not notice the
    /// recovery.
    func recentFailure(within period: Duration) -> ChangeLogError? {
        let now = clock.now()
        return state.withLock { state in now - state.failedAt < period ? state.failure : nil }
    }

    private func recordSuccess() {
        let isNews = state.withLock { state in
            defer { state.failure = nil }
            return state.failure != nil
        }
        if isNews { logger.notice("Uploads are appended again") }
    }
}
