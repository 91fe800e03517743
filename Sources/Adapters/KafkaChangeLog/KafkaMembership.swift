import ChangeLog
import Kafka
import Synchronization

/// A member of a group of Kafka.
///
/// It is in the group while it runs: partitions are shared cooperatively, those that stay go on being worked on.
package final class KafkaMembership: LogMembership {
    /// Makes a session, which tells of its changes.
    typealias Begin =
        @Sendable (@escaping @Sendable (GroupSession.Change) -> Void) throws(ChangeLogError) -> GroupSession

    private enum Phase {
        case joined
        /// With those who wait for its end.
        case running(AsyncStream<Signal>.Continuation, leavers: [CheckedContinuation<Bool, Never>])
        case ended
    }

    private enum Signal: Sendable {
        case change(GroupSession.Change)
        /// Look whether the run must end.
        case look
    }

    private struct State {
        var phase = Phase.joined
        var isLeaving = false
        /// The error of a closed log, or what the first worker or the group failed with.
        var failure: (any Error)?
        var logError: ChangeLogError?
    }

    private let begin: Begin
    private let committed: @Sendable (Int) async throws(ChangeLogError) -> Int64?
    private let closeClerk: @Sendable () async -> Void
    private let hasEnded: @Sendable () -> Void
    private let state = Mutex(State())

    init(
        begin: @escaping Begin, committed: @escaping @Sendable (Int) async throws(ChangeLogError) -> Int64?,
        close: @escaping @Sendable () async -> Void, hasEnded: @escaping @Sendable () -> Void
    ) {
        self.begin = begin
        self.committed = committed
        closeClerk = close
        self.hasEnded = hasEnded
    }

    /// Runs a worker for each partition assigned.
    package func run(_ worker: @escaping @Sendable (Assignment) async throws -> Void) async throws {
        // Bounded by what rebalances change: a partition is assigned again only after it was released here.
        let (signals, bell) = AsyncStream.makeStream(of: Signal.self)
        try start(bell)
        let session: GroupSession
        do throws(ChangeLogError) {
            session = try begin { bell.yield(.change($0)) }
        } catch {
            await closeClerk()
            _ = end()
            throw error
        }
        session.begin()
        var running: [GroupSession.Holding: Task<Void, Never>] = [:]
        // Ends by cancellation, too.
        for await signal in signals {
            if case .change(.failed(let error)) = signal { fail(error) }
            if mustEnd { break }
            guard case .change(let change) = signal else { continue }
            switch change {
            case .assigned(let holdings):
                for holding in holdings { running[holding] = start(holding, session, bell, worker) }
            case .revoked(let holdings):
                await Self.end(holdings.compactMap { running.removeValue(forKey: $0) })
                session.release(holdings)
            case .failed: break
            }
        }
        await Self.end(Array(running.values))
        await session.leave(state.withLock { $0.logError })
        await closeClerk()
        if let error = end() { throw error }
    }

    /// Leaves the group, and returns when the workers have ended.
    package func leave() async { await leave(nil) }

    /// Leaves the group with the log.
    func close() async { await leave(.closed("the log")) }

    private func leave(_ logError: ChangeLogError?) async {
        let wasIdle = await withCheckedContinuation { (continuation: CheckedContinuation<Bool, Never>) in
            let (bell, hasEnded): (AsyncStream<Signal>.Continuation?, Bool) = state.withLock { state in
                state.isLeaving = true
                if state.logError == nil { state.logError = logError }
                guard case .running(let bell, let leavers) = state.phase else {
                    defer { state.phase = .ended }
                    if case .joined = state.phase { return (nil, true) }
                    return (nil, false)
                }
                state.phase = .running(bell, leavers: leavers + [continuation])
                return (bell, false)
            }
            if let bell {
                bell.yield(.look)
                return
            }
            continuation.resume(returning: hasEnded)
        }
        guard wasIdle else { return }
        await closeClerk()
        hasEnded()
    }

    private var mustEnd: Bool { state.withLock { $0.isLeaving || $0.failure != nil } }

    private func fail(_ error: any Error) {
        state.withLock { state in
            if state.failure == nil { state.failure = error }
        }
    }

    private func start(_ bell: AsyncStream<Signal>.Continuation) throws {
        let refusal: ChangeLogError? = state.withLock { state in
            switch state.phase {
            case .joined:
                state.phase = .running(bell, leavers: [])
                return nil
            case .running: preconditionFailure("a member of a group runs once")
            case .ended: return state.logError ?? .closed("the membership")
            }
        }
        if let refusal { throw refusal }
    }

    /// Ends the run.
    ///
    /// - Returns: why, unless it was asked to.
    private func end() -> (any Error)? {
        let (failure, logError, leavers) = state.withLock { state in
            var leavers: [CheckedContinuation<Bool, Never>] = []
            if case .running(_, let waiting) = state.phase { leavers = waiting }
            state.phase = .ended
            return (state.failure, state.logError, leavers)
        }
        hasEnded()
        for leaver in leavers { leaver.resume(returning: false) }
        return failure ?? logError
    }

    private static func end(_ workers: [Task<Void, Never>]) async {
        for worker in workers { worker.cancel() }
        for worker in workers { await worker.value }
    }

    private func start(
        _ holding: GroupSession.Holding, _ session: GroupSession, _ bell: AsyncStream<Signal>.Continuation,
        _ worker: @escaping @Sendable (Assignment) async throws -> Void
    ) -> Task<Void, Never> {
        let assignment = Assignment(partition: TopicPartition(session.topic, holding.partition)) {
            [committed] () async throws(ChangeLogError) in
            try await committed(holding.partition)
        } commit: { (offset) async throws(ChangeLogError) in
            try await session.commit(offset, of: holding)
        }
        return Task {
            do {
                try await worker(assignment)
            } catch {
                // A worker that was told to end has nothing to say.
                if Task.isCancelled { return }
                fail(error)
                bell.yield(.look)
            }
        }
    }
}
