import AsyncPrimitives
import ChangeLog
import Synchronization

/// A member of a group within this process.
package final class LocalMembership: LogMembership {
    private enum Phase {
        case joined
        /// With the wakeup of ``run(_:)``.
        case running(AsyncStream<Void>.Continuation)
        case ended
    }

    private struct State {
        var phase = Phase.joined
        var isLeaving = false
        /// The first error of a worker.
        var failure: (any Error)?
    }

    private let group: GroupName
    private let coordinator: GroupCoordinator
    private let queue: WorkQueue
    private let state = Mutex(State())
    /// Fulfilled at the end of ``run(_:)``.
    private let ended = Promise<Void>()

    package init(group: GroupName, coordinator: GroupCoordinator, queue: WorkQueue) {
        self.group = group
        self.coordinator = coordinator
        self.queue = queue
    }

    /// Runs a worker for each assigned partition.
    package func run(_ worker: @escaping @Sendable (Assignment) async throws -> Void) async throws {
        // One pending wakeup is enough: each reads the whole assignment.
        let (wakeups, wakeup) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        try begin(wakeup)
        let member = coordinator.join { wakeup.yield() }
        var running: [GroupCoordinator.Lease: Task<Void, Never>] = [:]
        // A cancellation ends the loop, too.
        for await _ in wakeups {
            if shouldEnd { break }
            let change = coordinator.assignment(of: member)
            let revoked = change.revoked.compactMap { running.removeValue(forKey: $0) }
            await Self.end(revoked)
            coordinator.release(change.revoked)
            for lease in change.assigned { running[lease] = start(lease, wakeup, worker) }
        }
        await Self.end(running.sorted { $0.key.partition < $1.key.partition }.map(\.value))
        coordinator.leave(member)
        try finish()
    }

    package func leave() async {
        let wakeup: AsyncStream<Void>.Continuation? = state.withLock { state in
            state.isLeaving = true
            if case .running(let wakeup) = state.phase { return wakeup }
            state.phase = .ended
            return nil
        }
        guard let wakeup else { return }
        wakeup.yield()
        await ended.value()
    }

    private var shouldEnd: Bool {
        coordinator.isClosed || state.withLock { $0.isLeaving || $0.failure != nil }
    }

    private func begin(_ wakeup: AsyncStream<Void>.Continuation) throws {
        let hasEnded = state.withLock { state in
            switch state.phase {
            case .joined:
                state.phase = .running(wakeup)
                return false
            case .running: preconditionFailure("a member of a group runs once")
            case .ended: return true
            }
        }
        if hasEnded { throw ChangeLogError.closed("the membership") }
    }

    private func finish() throws {
        let (failure, isLeaving) = state.withLock { state in
            state.phase = .ended
            return (state.failure, state.isLeaving)
        }
        ended.fulfil(())
        if let failure { throw failure }
        if !isLeaving, coordinator.isClosed { throw ChangeLogError.closed("the log") }
    }

    private static func end(_ workers: [Task<Void, Never>]) async {
        for worker in workers { worker.cancel() }
        for worker in workers { await worker.value }
    }

    private func start(
        _ lease: GroupCoordinator.Lease, _ wakeup: AsyncStream<Void>.Continuation,
        _ worker: @escaping @Sendable (Assignment) async throws -> Void
    ) -> Task<Void, Never> {
        let assignment = assignment(of: lease)
        return Task {
            do {
                try await worker(assignment)
            } catch {
                // A cancelled worker's error is expected.
                if Task.isCancelled { return }
                state.withLock { state in
                    if state.failure == nil { state.failure = error }
                }
                wakeup.yield()
            }
        }
    }

    private func assignment(of lease: GroupCoordinator.Lease) -> Assignment {
        let partition = TopicPartition(group.topic, lease.partition)
        return Assignment(partition: partition) { [queue, group] () async throws(ChangeLogError) in
            // Through the queue, behind the last commit of the previous worker.
            try await queue.request(.load(group, partition: lease.partition))
        } commit: { [queue, group, coordinator] (offset) async throws(ChangeLogError) in
            try await queue.request(
                .store(group, partition: lease.partition, offset: offset) { coordinator.isCurrent(lease) })
        }
    }
}
