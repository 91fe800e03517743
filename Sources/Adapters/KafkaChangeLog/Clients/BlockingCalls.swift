import ChangeLog
import Kafka
import Synchronization
import ThreadExecutor

/// Threads for calls that block until the cluster responds.
///
/// A call runs on the thread with the fewest calls. Calls to the leader of a partition that did not respond the last time share
/// the last thread, however many such partitions there are, so that they do not delay the others. The number of calls is bounded
/// by the tasks that wait for them.
final class BlockingCalls: Sendable {
    /// The time limit of a query in milliseconds: longer than the election of a leader, and short enough to report a failure.
    static let limit = 15_000
    /// That of a query to the leader of a partition, for which others wait: the stages ask again.
    private static let leaderLimit = 3_000

    private struct State {
        /// The number of calls of each thread.
        var counts: [Int]
        /// The partitions whose leader did not respond to the last call.
        var silent: Set<TopicPartition> = []
        /// The number of calls to their leaders, which are all on the last thread.
        var silentCalls = 0
        var isClosed = false

        /// The thread for a call.
        func thread(isSilent: Bool) -> Int {
            let last = counts.endIndex - 1
            if isSilent { return last }
            let candidates = silentCalls > 0 && last > 0 ? counts.indices.dropLast() : counts.indices
            return candidates.min { counts[$0] < counts[$1] } ?? last
        }
    }

    private let threads: [DedicatedThread]
    private let state: Mutex<State>

    init(threads count: Int = 4) async throws(ChangeLogError) {
        var threads: [DedicatedThread] = []
        do {
            for number in 0..<count { threads.append(try DedicatedThread(name: "weir-kafka-\(number)")) }
        } catch {
            for thread in threads { await thread.close() }
            throw ChangeLogError(.other, message: "\(error)", isRetriable: true)
        }
        self.threads = threads
        state = Mutex(State(counts: Array(repeating: 0, count: count)))
    }

    /// Whether further calls are refused.
    var isClosed: Bool { state.withLock { $0.isClosed } }

    /// Runs a call that throws Kafka's errors.
    ///
    /// - Parameters:
    ///   - partition: the partition of the call, for the error.
    ///   - group: the group of the call, for the error.
    func run<Value: Sendable>(
        _ partition: TopicPartition? = nil, group: String? = nil,
        _ body: @escaping @Sendable () throws(KafkaError) -> Value
    ) async throws(ChangeLogError) -> Value {
        let result: Result<Value, KafkaError>? = await runInfallible { Result { () throws(KafkaError) in try body() } }
        guard let result else { throw .closed("the log", partition: partition) }
        return try translating(partition, group: group) { () throws(KafkaError) in try result.get() }
    }

    /// Runs a call to the leader of a partition that throws Kafka's errors.
    ///
    /// - Parameter body: gets its time limit.
    func runAtLeader<Value: Sendable>(
        of partition: TopicPartition, _ body: @escaping @Sendable (_ milliseconds: Int) throws(KafkaError) -> Value
    ) async throws(ChangeLogError) -> Value {
        // A command that reads `control` asks once, with connections that are still to be made.
        let limit = partition.topic == .control ? Self.limit : Self.leaderLimit
        while true {
            let isSilent = isSilent(partition)
            let outcome: Result<Value, KafkaError>?? = await perform(isSilent: isSilent) { [self] in
                // Each may take as long as the limit: the end of the process does not wait for those that have not begun, nor do
                // other partitions for those that were queued before their leader fell silent.
                if isSilent ? isClosed : self.isSilent(partition) { return nil }
                let result = Result { () throws(KafkaError) in try body(limit) }
                // Before the next call of this thread begins. Which code says that a leader is away depends on when it went.
                if case .failure(let error) = result, error.isRetriable {
                    state.withLock { _ = $0.silent.insert(partition) }
                } else {
                    state.withLock { _ = $0.silent.remove(partition) }
                }
                return result
            }
            guard let result = outcome ?? nil else {
                if isClosed { throw .closed("the log", partition: partition) }
                continue
            }
            return try translating(partition) { () throws(KafkaError) in try result.get() }
        }
    }

    private func isSilent(_ partition: TopicPartition) -> Bool { state.withLock { $0.silent.contains(partition) } }

    /// Runs a call to a group's coordinator, and retries while the coordinator is unavailable or loads the group.
    ///
    /// librdkafka 2.0 may lose the response of a coordinator that loads, so each attempt gets only a part of the time.
    func runAtCoordinator<Value: Sendable>(
        of group: String? = nil, _ partition: TopicPartition? = nil,
        _ body: @escaping @Sendable (_ milliseconds: Int) throws(KafkaError) -> Value
    ) async throws(ChangeLogError) -> Value {
        let deadline = ContinuousClock.now + .milliseconds(Self.limit)
        while true {
            do throws(ChangeLogError) {
                return try await run(partition, group: group) { () throws(KafkaError) in try body(Self.limit / 5) }
            } catch {
                guard error.isRetriable, ContinuousClock.now < deadline else { throw error }
            }
            // Kafka does not notify when a coordinator is ready.
            do { try await Task.sleep(for: .milliseconds(100)) } catch {
                throw ChangeLogError(.other, partition: partition, message: "the call was cancelled", isRetriable: true)
            }
        }
    }

    /// Runs a call that does not throw; returns `nil` after ``close()``.
    @discardableResult
    func runInfallible<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value? {
        await perform(isSilent: false, body)
    }

    private func perform<Value: Sendable>(isSilent: Bool, _ body: @escaping @Sendable () -> Value) async -> Value? {
        let index: Int? = state.withLock { state in
            if state.isClosed { return nil }
            let index = state.thread(isSilent: isSilent)
            state.counts[index] += 1
            if isSilent { state.silentCalls += 1 }
            return index
        }
        guard let index else { return nil }
        let value = await threads[index].run(body)
        state.withLock { state in
            state.counts[index] -= 1
            if isSilent { state.silentCalls -= 1 }
        }
        return value
    }

    /// Refuses further calls, and ends the threads after the current ones.
    func close() async {
        state.withLock { $0.isClosed = true }
        for thread in threads { await thread.close() }
    }
}
