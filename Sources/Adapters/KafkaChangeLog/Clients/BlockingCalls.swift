import ChangeLog
import Kafka
import Synchronization
import ThreadExecutor

/// Threads for calls that block until the cluster responds.
///
/// A call runs on the thread with the fewest calls, so that a broker that does not respond delays few others. The number of calls
/// is bounded by the tasks that wait for them.
final class BlockingCalls: Sendable {
    /// The time limit of a query in milliseconds: longer than the election of a leader, and short enough to report a failure.
    static let limit = 15_000

    private struct State {
        /// The number of calls of each thread.
        var counts: [Int]
        var isClosed = false
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
        let index: Int? = state.withLock { state in
            if state.isClosed { return nil }
            let index = state.counts.indices.min { state.counts[$0] < state.counts[$1] } ?? 0
            state.counts[index] += 1
            return index
        }
        guard let index else { return nil }
        let value = await threads[index].run(body)
        state.withLock { $0.counts[index] -= 1 }
        return value
    }

    /// Refuses further calls, and ends the threads after the current ones.
    func close() async {
        state.withLock { $0.isClosed = true }
        for thread in threads { await thread.close() }
    }
}
