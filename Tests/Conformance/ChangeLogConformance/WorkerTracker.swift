import AsyncPrimitives
import ChangeLog
import Synchronization
import Testing

/// Suspends until the task is cancelled.
func untilCancelled() async {
    let (stream, continuation) = AsyncStream.makeStream(of: Never.self)
    for await _ in stream {}
    continuation.finish()
}

/// Tracks which member works on which partition: tests wait for a state, and overlapping workers are counted.
final class WorkerTracker: Sendable {
    private struct Waiting {
        let isMet: @Sendable ([Int: Int]) -> Bool
        let continuation: CheckedContinuation<Void, Never>
    }

    private struct State {
        /// The member that works on each partition.
        var workers: [Int: Int] = [:]
        var assignments: [Int: Assignment] = [:]
        var overlaps = 0
        var waiting: [Waiting] = []
    }

    private let state = Mutex(State())

    /// How often two workers had a partition at the same time.
    var overlaps: Int { state.withLock { $0.overlaps } }

    /// Works until the task is cancelled, ends slowly, and then calls `last`.
    func work(
        _ assignment: Assignment, as member: Int, last: @Sendable (Assignment) async throws -> Void = { _ in }
    ) async throws {
        let partition = assignment.partition.partition
        change { state in
            if state.workers[partition] != nil { state.overlaps += 1 }
            state.workers[partition] = member
            state.assignments[partition] = assignment
        }
        await untilCancelled()
        // A handover that does not wait for this worker would overlap with it.
        for _ in 0..<20 { await Task.yield() }
        let result = await Result.capturing { try await last(assignment) }
        change { state in
            if state.workers[partition] != member { state.overlaps += 1 }
            state.workers[partition] = nil
        }
        try result.get()
    }

    /// Waits until the workers, each partition's member, satisfy a condition.
    func wait(until isMet: @escaping @Sendable (_ workers: [Int: Int]) -> Bool) async {
        await withCheckedContinuation { continuation in
            let isMetNow = state.withLock { state in
                if isMet(state.workers) { return true }
                state.waiting.append(Waiting(isMet: isMet, continuation: continuation))
                return false
            }
            if isMetNow { continuation.resume() }
        }
    }

    /// The newest assignment of a partition, after a member has begun to work on it.
    func assignment(of partition: Int, by member: Int) async -> Assignment {
        await wait { $0[partition] == member }
        return lastAssignment(of: partition)
    }

    /// Whether a member works on a partition now.
    func isWorked(_ partition: Int, by member: Int) -> Bool { state.withLock { $0.workers[partition] == member } }

    /// The newest assignment of a partition, also after its worker has ended.
    func lastAssignment(of partition: Int) -> Assignment { state.withLock { $0.assignments[partition] }! }

    private func change(_ body: (inout State) -> Void) {
        let met: [Waiting] = state.withLock { state in
            body(&state)
            let workers = state.workers
            let met = state.waiting.filter { $0.isMet(workers) }
            state.waiting.removeAll { $0.isMet(workers) }
            return met
        }
        for waiting in met { waiting.continuation.resume() }
    }
}

/// Runs a member during a body, then cancels it and waits for its end.
func running<Membership: LogMembership>(
    _ membership: Membership, as member: Int, on tracker: WorkerTracker, _ body: () async throws -> Void
) async throws {
    let task = Task { try await membership.run { try await tracker.work($0, as: member) } }
    let result = await Result.capturing { try await body() }
    task.cancel()
    try await task.value
    try result.get()
}
