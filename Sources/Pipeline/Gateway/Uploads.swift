import ChangeLog
import Observability
import SyncModel
import Synchronization

/// Appends batches to `uploads`.
///
/// One producer at a time; one that failed refuses everything that follows, so the next batch gets a new one (I1).
final class Uploads<Log: ChangeLog>: Sendable {
    /// A producer, or the reason why there is none.
    private typealias Made = Result<Log.Producer, ChangeLogError>

    private struct State {
        /// The current producer, once it is made; whoever comes meanwhile waits for the same one.
        var producer: Task<Made, Never>?
        /// Tells producers apart.
        var generation = 0
        var isClosed = false
        /// Why the last append failed, until one succeeds: what failed behind it is told the same.
        var failure: ChangeLogError?
        /// When it failed last.
        var failedAt = Duration.zero
        /// The partitions that take no uploads, because those before wait too long.
        var behind: Set<Int> = []
    }

    private let log: Log
    private let logger: Logger
    private let partitioning: Partitioning
    private let time: GatewayDeadline
    private let state = Mutex(State())

    init(log: Log, history: History, logger: Logger, time: GatewayDeadline) {
        self.log = log
        self.logger = logger
        self.time = time
        partitioning = Partitioning(count: history.partitions)
    }

    /// The partition of a caller's uploads, and of its own data.
    func partition(of caller: SyncID) -> Int { partitioning.partition(of: caller) }

    /// Appends the message of a batch; returns when the log has it durably (I1).
    func append(_ message: [UInt8], of caller: SyncID) async throws(ChangeLogError) -> UploadReference {
        let destination = TopicPartition(.uploads, partition(of: caller))
        let record = NewRecord(to: destination, key: Array(caller.text.utf8), value: message)
        let size = record.key.count + record.value.count
        guard size <= log.maximumRecordSize else {
            throw ChangeLogError(
                .recordTooLarge(maximum: log.maximumRecordSize), partition: destination,
                message: "the message has \(size) bytes, the log takes \(log.maximumRecordSize)")
        }
        let (making, generation) = try current()
        do throws(ChangeLogError) {
            let offsets = try await making.value.get().append([record])
            guard let offset = offsets.first else {
                throw ChangeLogError(.other, partition: destination, message: "the log gave no offset for a record")
            }
            noteSuccess()
            return UploadReference(partition: destination.partition, offset: offset)
        } catch {
            let cause = note(error)
            await discard(making, generation)
            throw cause
        }
    }

    /// Waits for what is under way and takes no more.
    func close() async {
        let making = state.withLock { state in
            state.isClosed = true
            return state.producer.take()
        }
        if case .success(let producer)? = await making?.value { await producer.close() }
    }

    private func current() throws(ChangeLogError) -> (Task<Made, Never>, generation: Int) {
        let current: (Task<Made, Never>, Int)? = state.withLock { state in
            if state.isClosed { return nil }
            if let producer = state.producer { return (producer, state.generation) }
            // A task of its own: what several wait for must not end with the first one's client.
            let log = log
            let made = Task { () async -> Made in
                do throws(ChangeLogError) { return .success(try await log.producer()) } catch { return .failure(error) }
            }
            state.producer = made
            state.generation += 1
            return (made, state.generation)
        }
        guard let current else { throw ChangeLogError(.closed, message: "the gateway stops") }
        return current
    }

    private func discard(_ making: Task<Made, Never>, _ generation: Int) async {
        let isCurrent = state.withLock { state in
            guard state.producer != nil, state.generation == generation else { return false }
            state.producer = nil
            return true
        }
        if isCurrent, case .success(let producer) = await making.value { await producer.close() }
    }

    /// Notes how long a partition's uploads wait; the log tells when that becomes too long, and when it no longer is.
    func note(_ lag: Duration, of partition: Int, isTooLong: Bool) {
        let isNews = state.withLock { state in
            isTooLong ? state.behind.insert(partition).inserted : state.behind.remove(partition) != nil
        }
        guard isNews else { return }
        if isTooLong {
            logger.warning(
                "Uploads of a partition are refused: those before them wait too long to be ordered",
                [.partition: .integer(partition), .duration: .duration(lag)])
        } else {
            logger.notice("Uploads of a partition are taken again", [.partition: .integer(partition)])
        }
    }

    /// Notes a failure; its cause, where another one came before it.
    private func note(_ error: ChangeLogError) -> ChangeLogError {
        let now = time.now()
        let (cause, isNews) = state.withLock { state in
            let known = state.failure
            if known == nil || error.code != .producerFailed { state.failure = error }
            state.failedAt = now
            return (state.failure ?? error, known == nil && !state.isClosed)
        }
        // The log tells of changes alone.
        if isNews { logger.warning("Uploads cannot be appended", error: cause) }
        return cause
    }

    /// Why uploads could not be appended of late; `nil` where they could.
    ///
    /// A failure counts for a while alone: whoever stops sending requests because of it would never learn that it has passed.
    func recentFailure(within memory: Duration) -> ChangeLogError? {
        let now = time.now()
        return state.withLock { state in now - state.failedAt < memory ? state.failure : nil }
    }

    private func noteSuccess() {
        let isNews = state.withLock { state in
            defer { state.failure = nil }
            return state.failure != nil
        }
        if isNews { logger.notice("Uploads are appended again") }
    }
}
