import ChangeLog
import Kafka
import Observability
import Synchronization

/// A member of a consumer group.
///
/// It is in the group while ``run(_:)`` runs. Rebalances are cooperative: partitions that stay assigned are not interrupted.
package final class KafkaMembership: LogMembership {
    struct Dependencies: Sendable {
        let session: GroupSession.Dependencies
        /// How long the workers of revoked partitions may take to end.
        ///
        /// Partitions that are revoked together are released together, so a slow one delays the others.
        let revocationLimit: Duration
        /// Reads the committed offset of a partition.
        let committed: @Sendable (Int) async throws(ChangeLogError) -> Int64?
        /// Closes the client that ``committed`` uses.
        let closeOffsetsClient: @Sendable () async -> Void
        let hasEnded: @Sendable () -> Void
    }

    private enum Phase {
        case notStarted
        /// With the callers of `leave()`.
        case running(AsyncStream<Signal>.Continuation, leavers: [CheckedContinuation<Bool, Never>])
        case ended
    }

    private enum Signal: Sendable {
        case change(GroupSession.Change)
        /// ``mustEnd`` may have changed.
        case check
    }

    private struct State {
        var phase = Phase.notStarted
        var isLeaving = false
        /// The error of the first worker that failed, or of the group.
        var failure: (any Error)?
        /// Set when the log is closed.
        var logError: ChangeLogError?
    }

    private let dependencies: Dependencies
    private let state = Mutex(State())

    init(_ dependencies: Dependencies) { self.dependencies = dependencies }

    /// Runs a worker for each assigned partition.
    package func run(_ worker: @escaping @Sendable (Assignment) async throws -> Void) async throws {
        // Bounded by the partitions: one is assigned again only after it was released here.
        let (signals, continuation) = AsyncStream.makeStream(of: Signal.self)
        try start(continuation)
        let session: GroupSession
        do throws(ChangeLogError) {
            session = try GroupSession(dependencies.session) { continuation.yield(.change($0)) }
        } catch {
            await dependencies.closeOffsetsClient()
            _ = end()
            throw error
        }
        session.begin()
        var running: [GroupSession.HeldPartition: Task<Void, Never>] = [:]
        /// Workers that were cancelled and have not ended in time, by partition.
        var overdue: [Int: Task<Void, Never>] = [:]
        // Cancelling the task ends the loop, too.
        for await signal in signals {
            if case .change(.failed(let error)) = signal { fail(error) }
            if mustEnd { break }
            guard case .change(let change) = signal else { continue }
            switch change {
            case .assigned(let assigned):
                report("Partitions assigned", assigned.map(\.partition))
                for held in assigned {
                    let predecessor = overdue.removeValue(forKey: held.partition)
                    if predecessor != nil { report(waiting: held.partition) }
                    running[held] = start(held, after: predecessor, session, continuation, worker)
                }
            case .revoked(let revoked):
                let workers = revoked.compactMap { held in
                    running.removeValue(forKey: held).map { (held.partition, $0) }
                }
                let late = await Self.end(
                    Dictionary(uniqueKeysWithValues: workers), within: dependencies.revocationLimit)
                report("Partitions revoked", revoked.map(\.partition))
                if !late.isEmpty { report(late: Array(late.keys)) }
                overdue.merge(late) { $1 }
                session.release(revoked)
            case .failed: break
            }
        }
        if !running.isEmpty { report("Partitions revoked", running.keys.map(\.partition)) }
        await Self.end(Array(running.values) + overdue.values)
        await session.leave(state.withLock { $0.logError })
        await dependencies.closeOffsetsClient()
        if let error = end() { throw error }
    }

    /// Leaves the group, and returns when the workers have ended.
    package func leave() async { await leave(nil) }

    /// Leaves the group because the log is closed.
    func close() async { await leave(.closed("the log")) }

    private func leave(_ logError: ChangeLogError?) async {
        let hasNeverRun = await withCheckedContinuation { (leaver: CheckedContinuation<Bool, Never>) in
            let (continuation, hasEnded): (AsyncStream<Signal>.Continuation?, Bool) = state.withLock { state in
                state.isLeaving = true
                if state.logError == nil { state.logError = logError }
                guard case .running(let continuation, let leavers) = state.phase else {
                    defer { state.phase = .ended }
                    if case .notStarted = state.phase { return (nil, true) }
                    return (nil, false)
                }
                state.phase = .running(continuation, leavers: leavers + [leaver])
                return (continuation, false)
            }
            if let continuation {
                continuation.yield(.check)
                return
            }
            leaver.resume(returning: hasEnded)
        }
        guard hasNeverRun else { return }
        await dependencies.closeOffsetsClient()
        dependencies.hasEnded()
    }

    private var mustEnd: Bool { state.withLock { $0.isLeaving || $0.failure != nil } }

    private func fail(_ error: any Error) {
        state.withLock { state in
            if state.failure == nil { state.failure = error }
        }
    }

    private func start(_ continuation: AsyncStream<Signal>.Continuation) throws {
        let refusal: ChangeLogError? = state.withLock { state in
            switch state.phase {
            case .notStarted:
                state.phase = .running(continuation, leavers: [])
                return nil
            case .running: preconditionFailure("a membership runs only once")
            case .ended: return state.logError ?? .closed("the membership")
            }
        }
        if let refusal { throw refusal }
    }

    /// Ends the run; returns the error that ended it, if any.
    private func end() -> (any Error)? {
        let (failure, logError, leavers) = state.withLock { state in
            var leavers: [CheckedContinuation<Bool, Never>] = []
            if case .running(_, let waiting) = state.phase { leavers = waiting }
            state.phase = .ended
            return (state.failure, state.logError, leavers)
        }
        dependencies.hasEnded()
        for leaver in leavers { leaver.resume(returning: false) }
        return failure ?? logError
    }

    private static func end(_ workers: [Task<Void, Never>]) async {
        for worker in workers { worker.cancel() }
        for worker in workers { await worker.value }
    }

    /// Cancels workers, by partition, and waits until they have ended or the limit is reached.
    ///
    /// - Returns: those that have not ended.
    private static func end(
        _ workers: [Int: Task<Void, Never>], within limit: Duration
    ) async -> [Int: Task<Void, Never>] {
        // Bounded by the partitions; `nil` is the limit.
        let (ended, continuation) = AsyncStream.makeStream(of: Int?.self)
        for (partition, worker) in workers {
            worker.cancel()
            Task {
                await worker.value
                continuation.yield(partition)
            }
        }
        let timer = Task {
            try await Task.sleep(for: limit)
            continuation.yield(nil)
        }
        // In a task of its own, since the caller's may be cancelled.
        let late = await Task {
            var late = workers
            var events = ended.makeAsyncIterator()
            while !late.isEmpty, let partition = await events.next() {
                guard let partition else { break }
                late[partition] = nil
            }
            return late
        }.value
        timer.cancel()
        return late
    }

    private func report(_ message: String, _ partitions: [Int]) {
        dependencies.session.logger.info(message, metadata(partitions))
    }

    private func report(late partitions: [Int]) {
        dependencies.session.logger.warning(
            "Revoked partitions are released before their workers have ended, whose results are no longer accepted",
            metadata(partitions))
    }

    private func report(waiting partition: Int) {
        dependencies.session.logger.warning(
            "A partition is assigned again and waits for its earlier worker, which has not ended", metadata([partition])
        )
    }

    private func metadata(_ partitions: [Int]) -> LogMetadata {
        [
            .topic: .string(dependencies.session.topic.rawValue),
            .partition: .string(partitions.sorted().map(String.init).joined(separator: ",")),
        ]
    }

    /// - Parameter predecessor: an earlier worker of the partition, whose end is awaited first.
    private func start(
        _ held: GroupSession.HeldPartition, after predecessor: Task<Void, Never>?, _ session: GroupSession,
        _ continuation: AsyncStream<Signal>.Continuation,
        _ worker: @escaping @Sendable (Assignment) async throws -> Void
    ) -> Task<Void, Never> {
        let assignment = Assignment(partition: TopicPartition(session.topic, held.partition)) {
            [committed = dependencies.committed] () async throws(ChangeLogError) in
            try await committed(held.partition)
        } commit: { (offset) async throws(ChangeLogError) in
            try await session.commit(offset, of: held)
        }
        return Task {
            await predecessor?.value
            do {
                try await worker(assignment)
            } catch {
                // The error of a cancelled worker does not matter.
                if Task.isCancelled { return }
                fail(error)
                continuation.yield(.check)
            }
        }
    }
}
