import ChangeLog
import ChangeLogConformance
import Foundation
import Fuzzing
import KafkaChangeLog
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(5)), .enabled(if: TestCluster.isReal, "the mock cluster's groups take seconds"))
struct GroupTests {
    /// Each round joins, and leaves before, during or after the assignment.
    @Test func leavesDuringAssignmentsWithoutHanging() async throws {
        try await TestCluster.whenFree {
            let harness = try await KafkaLogHarness.make()
            let log = try await harness.open(LogSettings())
            let staying = try await log.join(group: "g", topic: .changes)
            let workers = Workers()
            let running = Task { try await staying.run { await workers.work($0) } }
            await workers.wait { $0 == 4 }
            for round in 0..<TestLength.count(20, short: 8, long: 100) {
                let member = try await log.join(group: "g", topic: .changes)
                let assigned = Workers()
                let task = Task.immediate { try await member.run { await assigned.work($0) } }
                switch round % 4 {
                case 0: break
                case 1: for _ in 0..<(round * 50) { await Task.yield() }
                case 2: await assigned.wait { $0 > 0 }
                default: await workers.wait { $0 < 4 }
                }
                await member.leave()
                try await task.value
            }
            await workers.wait { $0 == 4 }
            running.cancel()
            try await running.value
            try await harness.close(log)
            try await harness.remove()
        }
    }

    /// A member whose worker does nothing for longer than the session timeout stays in its group.
    @Test func memberWithPausedPartitionsStaysInItsGroup() async throws {
        try await TestCluster.whenFree {
            let harness = try await KafkaLogHarness.make()
            try await harness.createTopics(partitions: 4)
            var configuration = harness.configuration()
            configuration.sessionTimeout = .seconds(6)
            let log = try await KafkaChangeLog(configuration)
            let member = try await log.join(group: "g", topic: .changes)
            let workers = Workers()
            let running = Task { try await member.run { await workers.work($0) } }
            await workers.wait { $0 == 4 }
            let assignment = try #require(workers.last)
            // Longer than the session timeout, whose end has no signal.
            try await Task.sleep(for: .seconds(8))
            try await assignment.commit(1)
            #expect(workers.begun == 4)
            running.cancel()
            try await running.value
            await log.close()
            try await harness.remove()
        }
    }
}

/// Counts workers, and lets tests wait for a number of them.
private final class Workers: Sendable {
    private struct State {
        var count = 0
        var begun = 0
        var last: Assignment?
        var waiting: [(isMet: @Sendable (Int) -> Bool, continuation: CheckedContinuation<Void, Never>)] = []
    }

    private let state = Mutex(State())

    var last: Assignment? { state.withLock { $0.last } }

    /// The number of workers that have begun.
    var begun: Int { state.withLock { $0.begun } }

    func work(_ assignment: Assignment) async {
        change { state in
            state.count += 1
            state.begun += 1
            state.last = assignment
        }
        let (stream, continuation) = AsyncStream.makeStream(of: Never.self)
        for await _ in stream {}
        continuation.finish()
        change { $0.count -= 1 }
    }

    func wait(until isMet: @escaping @Sendable (Int) -> Bool) async {
        await withCheckedContinuation { continuation in
            let isMetNow = state.withLock { state in
                if isMet(state.count) { return true }
                state.waiting.append((isMet, continuation))
                return false
            }
            if isMetNow { continuation.resume() }
        }
    }

    private func change(_ body: (inout State) -> Void) {
        let met = state.withLock { state in
            body(&state)
            let count = state.count
            let met = state.waiting.filter { $0.isMet(count) }
            state.waiting.removeAll { $0.isMet(count) }
            return met
        }
        for waiting in met { waiting.continuation.resume() }
    }
}
