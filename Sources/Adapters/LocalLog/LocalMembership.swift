import ChangeLog
import Synchronization

/// A member of a group within this process.
package final class LocalMembership: LogMembership {
    private enum Phase {
        case joined
        /// With the bell that has ``run(_:)`` look again, and those who wait for its end.
        case running(AsyncStream<Void>.Continuation, leavers: [CheckedContinuation<Void, Never>])
        case ended
    }

    private struct State {
        var phase = Phase.joined
        var isLeaving = false
        /// What the first worker to fail threw.
        var failure: (any Error)?
    }

    private let group: GroupName
    private let coordinator: GroupCoordinator
    private let queue: WorkQueue
    private let state = Mutex(State())

    /// Makes a member, which takes part once it runs.
    package init(group: GroupName, coordinator: GroupCoordinator, queue: WorkQueue) {
        self.group = group
        self.coordinator = coordinator
        self.queue = queue
    }

    /// Runs a worker for each partition assigned.
    package func run(_ worker: @escaping @Sendable (Assignment) async throws -> Void) async throws {
        // One ring is as good as many: whoever hears it looks at everything.
        let (rings, bell) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        try begin(bell)
        let member = coordinator.join { bell.yield() }
        var running: [GroupCoordinator.Holding: Task<Void, Never>] = [:]
        // Ends by cancellation, too.
        for await _ in rings {
            if mustEnd { break }
            let change = coordinator.assignment(of: member)
            let revoked = change.revoked.compactMap { running.removeValue(forKey: $0) }
            await Self.end(revoked)
            coordinator.release(change.revoked)
            for holding in change.assigned { running[holding] = start(holding, bell, worker) }
        }
        await Self.end(running.sorted { $0.key.partition < $1.key.partition }.map(\.value))
        coordinator.leave(member)
        try finish()
    }

    /// Leaves the group, and returns when the workers have ended.
    package func leave() async {
        await withCheckedContinuation { continuation in
            let bell: AsyncStream<Void>.Continuation? = state.withLock { state in
                state.isLeaving = true
                guard case .running(let bell, let leavers) = state.phase else {
                    state.phase = .ended
                    return nil
                }
                state.phase = .running(bell, leavers: leavers + [continuation])
                return bell
            }
            if let bell { bell.yield() } else { continuation.resume() }
        }
    }

    private var mustEnd: Bool {
        coordinator.isClosed || state.withLock { $0.isLeaving || $0.failure != nil }
    }

    private func begin(_ bell: AsyncStream<Void>.Continuation) throws {
        let hasEnded = state.withLock { state in
            switch state.phase {
            case .joined:
                state.phase = .running(bell, leavers: [])
                return false
            case .running: preconditionFailure("a member of a group runs once")
            case .ended: return true
            }
        }
        if hasEnded { throw ChangeLogError.closed("the membership") }
    }

    private func finish() throws {
        let (failure, isLeaving, leavers) = state.withLock { state in
            var leavers: [CheckedContinuation<Void, Never>] = []
            if case .running(_, let waiting) = state.phase { leavers = waiting }
            state.phase = .ended
            return (state.failure, state.isLeaving, leavers)
        }
        for leaver in leavers { leaver.resume() }
        if let failure { throw failure }
        if !isLeaving, coordinator.isClosed { throw ChangeLogError.closed("the log") }
    }

    private static func end(_ workers: [Task<Void, Never>]) async {
        for worker in workers { worker.cancel() }
        for worker in workers { await worker.value }
    }

    private func start(
        _ holding: GroupCoordinator.Holding, _ bell: AsyncStream<Void>.Continuation,
        _ worker: @escaping @Sendable (Assignment) async throws -> Void
    ) -> Task<Void, Never> {
        let assignment = assignment(of: holding)
        return Task {
            do {
                try await worker(assignment)
            } catch {
                // A worker that was told to end has nothing to say.
                if Task.isCancelled { return }
                state.withLock { state in
                    if state.failure == nil { state.failure = error }
                }
                bell.yield()
            }
        }
    }

    private func assignment(of holding: GroupCoordinator.Holding) -> Assignment {
        let place = TopicPartition(group.topic, holding.partition)
        return Assignment(partition: place) { [queue, group] () async throws(ChangeLogError) in
            // Through the queue: behind the last commit of whoever had the partition before.
            try await queue.request(.load(group, partition: holding.partition))
        } commit: { [queue, group, coordinator] (offset) async throws(ChangeLogError) in
            try await queue.request(
                .store(group, partition: holding.partition, offset: offset) { coordinator.isHeld(holding) })
        }
    }
}
