import ChangeLog
import Kafka
import Synchronization
import ThreadExecutor

/// Threads for calls that wait for an answer of the cluster.
///
/// A call goes to the thread with the fewest, so that a broker that does not answer holds up as few others as can be. The
/// calls are bounded by those who wait for them.
final class BlockingCalls: Sendable {
    /// How long a question may take in milliseconds: long enough for a leader to change, short enough to say so.
    static let limit = 15_000

    private struct State {
        /// The calls of each thread.
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

    /// Runs a call whose errors are Kafka's.
    ///
    /// - Parameter group: the group that it is about.
    func run<Value: Sendable>(
        _ partition: TopicPartition? = nil, group: String? = nil,
        _ body: @escaping @Sendable () throws(KafkaError) -> Value
    ) async throws(ChangeLogError) -> Value {
        let result: Result<Value, KafkaError>? = await visit { Result { () throws(KafkaError) in try body() } }
        guard let result else { throw .closed("the log", partition: partition) }
        return try translating(partition, group: group) { () throws(KafkaError) in try result.get() }
    }

    /// Runs a call to a group's coordinator, again while that is being found or loads the group.
    ///
    /// librdkafka 2.0 may lose the answer of a coordinator that loads, so a try gets a part of the time alone.
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
            // Nobody tells when a coordinator is ready.
            do { try await Task.sleep(for: .milliseconds(100)) } catch {
                throw ChangeLogError(.other, partition: partition, message: "the call was cancelled", isRetriable: true)
            }
        }
    }

    /// Runs a call that cannot fail.
    ///
    /// - Returns: its result; `nil` when this is closed.
    @discardableResult
    func visit<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value? {
        let place: Int? = state.withLock { state in
            if state.isClosed { return nil }
            let place = state.counts.indices.min { state.counts[$0] < state.counts[$1] } ?? 0
            state.counts[place] += 1
            return place
        }
        guard let place else { return nil }
        let value = await threads[place].run(body)
        state.withLock { $0.counts[place] -= 1 }
        return value
    }

    /// Refuses further calls, and ends the threads after those under way.
    func close() async {
        state.withLock { $0.isClosed = true }
        for thread in threads { await thread.close() }
    }
}
