import ChangeLog
import ChangeLogConformance
import Configuration
import Foundation
import Fuzzing
import Kafka
import KafkaChangeLog
import MockKafka
import Synchronization
import Testing
import ThreadExecutor

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

    /// Workers that do not end delay the partitions revoked with theirs for a limited time, and commit nothing after that.
    ///
    /// A partition that comes back has one worker at a time.
    @Test func workersThatDoNotEndLoseTheirPartitions() async throws {
        try await TestCluster.whenFree {
            let harness = try await KafkaLogHarness.make()
            try await harness.createTopics(partitions: 4)
            let log = try await KafkaChangeLog(harness.configuration().with(\.sessionTimeout, .seconds(6)))
            let (stuck, other) = (Workers(), Workers())
            let member = try await log.join(group: "g", topic: .changes)
            let (gate, opening) = AsyncStream.makeStream(of: Never.self)
            let running = Task {
                try await member.run { assignment in
                    await stuck.work(assignment) {
                        // Not cancelled with the worker.
                        await Task { for await _ in gate {} }.value
                    }
                }
            }
            await stuck.wait { $0 == 4 }
            let held = stuck.assignments
            let second = try await log.join(group: "g", topic: .changes)
            let secondRun = Task { try await second.run { await other.work($0) } }
            await other.wait { $0 == 2 }
            for assignment in other.assignments { try await assignment.commit(1) }
            for assignment in held where other.partitions.contains(assignment.partition.partition) {
                let error = await #expect(throws: ChangeLogError.self) { try await assignment.commit(2) }
                #expect(error?.code == .fenced)
            }
            await second.leave()
            try await secondRun.value
            #expect(stuck.begun == 4)
            opening.finish()
            await stuck.waitUntilBegun(6)
            running.cancel()
            try await running.value
            await log.close()
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

/// Members whose sessions outlast the test, so that nothing waits for a session to expire.
@Suite(.timeLimit(.minutes(5)), .enabled(if: TestCluster.isReal, "the mock cluster has no named members"))
struct NamedMemberTests {
    /// The second process of a name gets the partitions of the first, which fails and then works without a name; neither
    /// interrupts the partitions of another process.
    @Test func aMemberIsReplacedByTheNextOneOfItsNameWithoutARebalance() async throws {
        try await Self.withTopics { harness in
            let (first, other) = (try await Member(harness, named: "a"), try await Member(harness, named: "b"))
            let firstRun = first.run()
            await first.workers.wait { $0 == 4 }
            let otherRun = other.run()
            await first.workers.wait { $0 == 2 }
            await other.workers.wait { $0 == 2 }
            let (held, begun) = (first.workers.partitions, other.workers.begun)

            let second = try await Member(harness, named: "a")
            let secondRun = second.run()
            await second.workers.wait { $0 == 2 }
            #expect(second.workers.partitions == held)
            let error = await #expect(throws: ChangeLogError.self) { try await firstRun.value }
            #expect(error?.message.contains("kafka.instance-name") == true)
            #expect(error?.isRetriable == true)
            #expect(other.workers.begun == begun)
            #expect(other.workers.partitions.count == 2)
            for assignment in second.workers.assignments + other.workers.assignments { try await assignment.commit(1) }

            // The first one takes part again, and the second keeps its name.
            let unnamedRun = first.run()
            await first.workers.wait { $0 > 0 }
            for assignment in second.workers.assignments + first.workers.assignments { try await assignment.commit(2) }
            for run in [unnamedRun, secondRun, otherRun] {
                run.cancel()
                try await run.value
            }
            for member in [first, second, other] { await member.log.close() }
        }
    }

    @Test func aNamedMemberThatStopsHandsOverAtOnce() async throws {
        try await Self.withTopics { harness in
            let (staying, stopping) = (try await Member(harness, named: "a"), try await Member(harness, named: "b"))
            let run = staying.run()
            for _ in 0..<TestLength.count(10, short: 4, long: 50) {
                await staying.workers.wait { $0 == 4 }
                let other = stopping.run()
                await stopping.workers.wait { $0 == 2 }
                await staying.workers.wait { $0 == 2 }
                other.cancel()
                try await other.value
            }
            await staying.workers.wait { $0 == 4 }
            run.cancel()
            try await run.value
            for member in [staying, stopping] { await member.log.close() }
        }
    }

    /// The first two processes end while partitions move between them.
    ///
    /// The brokers know that the first one must give up two, and not that
    /// the second one is to get them.
    @Test func partitionsThatMovedWhenAllMembersDiedAreAssigned() async throws {
        try await Self.withTopics { harness in
            let (first, second) = (try GroupClient(harness, named: "a"), try GroupClient(harness, named: "b"))
            try await first.join()
            let assigned = try await first.next()
            #expect(assigned == .assigned(4))
            try await second.join()
            let revoked = try await first.next()
            #expect(revoked == .revoked(2))
            let none = try await second.next()
            #expect(none == .assigned(0))

            let members = [
                try await Member(harness, named: "a", sessionTimeout: .seconds(6)),
                try await Member(harness, named: "b", sessionTimeout: .seconds(6)),
            ]
            let runs = members.map { $0.run() }
            for member in members { await member.workers.wait { $0 == 2 } }
            for assignment in members.flatMap(\.workers.assignments) { try await assignment.commit(1) }
            for run in runs {
                run.cancel()
                try await run.value
            }
            for member in members { await member.log.close() }
            await first.close()
            await second.close()
        }
    }

    /// A member that accepts assignments, and does not give up partitions.
    private struct GroupClient {
        enum Rebalance: Equatable {
            case assigned(Int)
            case revoked(Int)
        }

        private let client: KafkaClient
        private let thread: DedicatedThread
        private let topic: String

        init(_ harness: KafkaLogHarness, named name: String) throws {
            var properties = KafkaProperties()
            for (key, value) in [
                ("bootstrap.servers", harness.servers.joined(separator: ",")),
                ("group.id", harness.prefix + "g.changes"),
                ("group.instance.id", name), ("partition.assignment.strategy", "cooperative-sticky"),
                ("session.timeout.ms", "300000"), ("heartbeat.interval.ms", "50"),
            ] { properties.set(key, value) }
            client = try KafkaClient(.consumer, properties, events: .group)
            thread = try DedicatedThread(name: "group-client")
            topic = harness.prefix + "changes"
        }

        func join() async throws { try await thread.run { try client.subscribe(to: topic) } }

        /// Waits for the next change, by its number of partitions.
        func next() async throws -> Rebalance {
            try await thread.run {
                while true {
                    guard let event = try client.poll(), event.kind == .rebalance else { continue }
                    switch event.rebalance() {
                    case .assigned(let positions):
                        try client.accept(positions)
                        return .assigned(positions.count)
                    case .revoked(let positions): return .revoked(positions.count)
                    case .failed(let error): throw error
                    }
                }
            }
        }

        func close() async {
            await client.close(on: thread)
            await thread.close()
        }
    }

    /// A process with a name in the group of the test.
    private struct Member {
        let log: KafkaChangeLog
        let workers = Workers()

        init(
            _ harness: KafkaLogHarness, named name: String, sessionTimeout: Duration = .seconds(300)
        ) async throws {
            log = try await KafkaChangeLog(
                harness.configuration().with(\.instanceName, name).with(\.sessionTimeout, sessionTimeout))
        }

        func run() -> Task<Void, any Error> {
            Task {
                let membership = try await log.join(group: "g", topic: .changes)
                try await membership.run { await workers.work($0) }
            }
        }
    }

    private static func withTopics(_ body: (KafkaLogHarness) async throws -> Void) async throws {
        try await TestCluster.whenFree {
            let harness = try await KafkaLogHarness.make()
            try await harness.createTopics(partitions: 4)
            try await body(harness)
            try await harness.remove()
        }
    }
}

/// A client that ends between its join and its first assignment, where librdkafka before 2.3 aborts the process.
@Suite(.timeLimit(.minutes(5)))
struct FirstAssignmentTests {
    @Test func aMemberThatFailsBeforeItsFirstAssignmentEnds() async throws {
        let mock = MockCluster()
        let harness = KafkaLogHarness(mock: mock)
        let log = try await harness.open(LogSettings())
        mock.failRequests(Self.syncGroup, codes: [MockCluster.fencedInstance])
        let member = try await log.join(group: "g", topic: .changes)
        await #expect(throws: ChangeLogError.self) { try await member.run { _ in } }
        try await harness.close(log)
    }

    /// Kafka's API key of the request for an assignment.
    private static let syncGroup: Int16 = 14
}

/// Counts workers, and lets tests wait for a number of them.
private final class Workers: Sendable {
    private struct State {
        var count = 0
        var begun = 0
        var last: Assignment?
        var assignments: [Int: Assignment] = [:]
        var waiting: [(isMet: @Sendable (State) -> Bool, continuation: CheckedContinuation<Void, Never>)] = []
    }

    private let state = Mutex(State())

    var last: Assignment? { state.withLock { $0.last } }

    /// What the workers that run were given.
    var assignments: [Assignment] { state.withLock { Array($0.assignments.values) } }

    var partitions: Set<Int> { state.withLock { Set($0.assignments.keys) } }

    /// The number of workers that have begun.
    var begun: Int { state.withLock { $0.begun } }

    /// - Parameter ending: what the worker does once it is cancelled.
    func work(_ assignment: Assignment, ending: () async -> Void = {}) async {
        change { state in
            state.count += 1
            state.begun += 1
            state.last = assignment
            state.assignments[assignment.partition.partition] = assignment
        }
        let (stream, continuation) = AsyncStream.makeStream(of: Never.self)
        for await _ in stream {}
        continuation.finish()
        await ending()
        change { state in
            state.count -= 1
            state.assignments[assignment.partition.partition] = nil
        }
    }

    /// Waits for a number of workers.
    func wait(until isMet: @escaping @Sendable (Int) -> Bool) async { await waitForState { isMet($0.count) } }

    /// Waits until so many workers have begun, those that have ended included.
    func waitUntilBegun(_ count: Int) async { await waitForState { $0.begun >= count } }

    private func waitForState(_ isMet: @escaping @Sendable (State) -> Bool) async {
        await withCheckedContinuation { continuation in
            let isMetNow = state.withLock { state in
                if isMet(state) { return true }
                state.waiting.append((isMet, continuation))
                return false
            }
            if isMetNow { continuation.resume() }
        }
    }

    private func change(_ body: (inout State) -> Void) {
        let met = state.withLock { state in
            body(&state)
            let current = state
            let met = state.waiting.filter { $0.isMet(current) }
            state.waiting.removeAll { $0.isMet(current) }
            return met
        }
        for waiting in met { waiting.continuation.resume() }
    }
}
