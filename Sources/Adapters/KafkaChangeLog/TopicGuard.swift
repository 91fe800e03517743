import ChangeLog
import Synchronization

/// Keeps a process from taking topics that were made anew, or another cluster's, for those of its history.
///
/// librdkafka 2.0 does not show the ids that topics have. What it does show: a partition's end, which never moves back, and
/// the cluster's id. Whether another cluster has the same history is for whoever reads `control` to say.
final class TopicGuard: Sendable {
    private struct State {
        /// For each topic the end of each partition, as far as it is known.
        var ends: [Topic: [Int64]]
        /// Topics that do not hold what they held, whose records nobody can make again.
        var losses: [Topic: ChangeLogError] = [:]
        /// Why nothing may be appended at all.
        var halt: ChangeLogError?
        /// The cluster that holds the history.
        var cluster: String?
        var lastNumber = 0
        /// Who waits for losses: one for each stage.
        var waiting: [Int: (topics: Set<Topic>, stream: AsyncStream<ChangeLogError>.Continuation)] = [:]
    }

    /// What was known when records were enqueued, for when they are acknowledged.
    struct Ticket: Sendable {
        fileprivate let destinations: [TopicPartition]
        /// The end that each record's partition had already.
        fileprivate let floors: [Int64]
    }

    private let state: Mutex<State>
    private let topics: LogTopics

    /// Begins with nothing known of the topics.
    init(_ topics: LogTopics, cluster: String?) {
        self.topics = topics
        let ends = Topic.allCases.map { ($0, [Int64](repeating: 0, count: topics.count(of: $0))) }
        state = Mutex(State(ends: Dictionary(uniqueKeysWithValues: ends), cluster: cluster))
    }

    // MARK: Appending

    /// Lets records be enqueued by a client.
    ///
    /// - Parameter cluster: the id of the cluster that the client is connected with, if it knows it yet.
    func admit(_ records: [NewRecord], cluster: String?) throws(ChangeLogError) -> Ticket {
        let ticket: Result<Ticket, ChangeLogError> = state.withLock { state in
            if let halt = state.halt { return .failure(halt) }
            if let other = Self.otherCluster(cluster, state) { return .failure(other) }
            if !state.losses.isEmpty {
                for record in records {
                    if let loss = state.losses[record.destination.topic] { return .failure(loss) }
                }
            }
            return .success(
                Ticket(
                    destinations: records.map(\.destination),
                    floors: records.map { state.ends[$0.destination.topic]?[$0.destination.partition] ?? 0 }))
        }
        return try ticket.get()
    }

    /// Judges the acknowledgement of records.
    ///
    /// - Throws: where they are not where the history goes on; what was enqueued behind them may be there, too.
    func confirm(_ offsets: [Int64], _ ticket: Ticket, cluster: String?) throws(ChangeLogError) {
        let refusal: ChangeLogError? = state.withLock { state in
            if let halt = state.halt { return halt }
            if let other = Self.otherCluster(cluster, state) { return other }
            var refusal: ChangeLogError?
            for (place, offset) in zip(ticket.destinations.indices, offsets) {
                let partition = ticket.destinations[place]
                if offset < ticket.floors[place] {
                    refusal = refusal ?? lose(partition, end: offset, held: ticket.floors[place], &state)
                } else {
                    raise(partition, to: offset + 1, &state)
                }
            }
            return refusal
        }
        if let refusal { throw refusal }
    }

    private static func otherCluster(_ cluster: String?, _ state: State) -> ChangeLogError? {
        guard let cluster, let own = state.cluster, cluster != own else { return nil }
        return ChangeLogError(
            .other,
            message: """
                the brokers are of cluster \(cluster), not of \(own): nothing is appended until control shows that they hold \
                the same history
                """, isRetriable: true)
    }

    // MARK: Looking

    /// The partition had this end.
    func note(_ partition: TopicPartition, end: Int64) {
        state.withLock { raise(partition, to: end, &$0) }
    }

    /// The ends of a topic's partitions, as far as they are known.
    func ends(of topic: Topic) -> [Int64] { state.withLock { $0.ends[topic] ?? [] } }

    /// Compares the ends that a topic has now with those known before it was asked.
    func compare(_ topic: Topic, _ ends: [Int64], with known: [Int64]) {
        state.withLock { state in
            var isWhole = true
            for (partition, end) in ends.enumerated() {
                let place = TopicPartition(topic, partition)
                if end < known[partition] {
                    isWhole = false
                    _ = lose(place, end: end, held: known[partition], &state)
                } else {
                    raise(place, to: end, &state)
                }
            }
            if isWhole { state.losses[topic] = nil }
        }
    }

    /// The topic is not there.
    func miss(_ topic: Topic) {
        state.withLock { state in
            let error = ChangeLogError(
                .other,
                message: "the topic \(topics.name(of: topic)) does not exist any more: \(Self.advice(topic))",
                isRetriable: true)
            if Self.isLasting(topic) { tell(topic, error, isLasting: true, &state) }
        }
    }

    /// Notes that a partition does not hold what it held.
    private func lose(
        _ partition: TopicPartition, end: Int64, held: Int64, _ state: inout State
    ) -> ChangeLogError? {
        let topic = partition.topic
        let error = ChangeLogError(
            .other, partition: partition,
            message: """
                the topic \(topics.name(of: topic)) was made anew or lost records: it held \(held) records and goes on at \
                offset \(end): \(Self.advice(topic))
                """, isRetriable: true)
        let isLasting = Self.isLasting(topic)
        // What can be made again goes on from where it is.
        if !isLasting { state.ends[topic]?[partition.partition] = end }
        tell(topic, error, isLasting: isLasting, &state)
        return isLasting ? error : nil
    }

    private func tell(_ topic: Topic, _ error: ChangeLogError, isLasting: Bool, _ state: inout State) {
        // Whoever waits is told when the loss is new.
        if isLasting, state.losses.updateValue(error, forKey: topic) != nil { return }
        for waiting in state.waiting.values where waiting.topics.contains(topic) { waiting.stream.yield(error) }
    }

    private func raise(_ partition: TopicPartition, to end: Int64, _ state: inout State) {
        guard let known = state.ends[partition.topic]?[partition.partition], known < end else { return }
        state.ends[partition.topic]?[partition.partition] = end
    }

    /// Whether nobody can make the topic's records again.
    private static func isLasting(_ topic: Topic) -> Bool { topic == .uploads || topic == .changes }

    private static func advice(_ topic: Topic) -> String {
        switch topic {
        case .uploads:
            """
            nothing is appended to it until its offsets are above those that were ordered; restore it, or append records of any \
            content to it until they are
            """
        case .changes: "nothing is appended to it until it is restored, or begin a new history in an empty place"
        case .ordered, .deadLetters, .control: "what it held of results is made again where it is needed"
        }
    }

    // MARK: Losses

    /// Why one of the topics cannot be worked with; `nil` where all can.
    func fault(of topics: [Topic]) -> ChangeLogError? {
        state.withLock { state in
            if let halt = state.halt { return halt }
            for topic in topics {
                if let loss = state.losses[topic] { return loss }
            }
            return nil
        }
    }

    /// Waits until one of the topics is found to lack what it held.
    ///
    /// - Returns: what is missing; `nil` when the task is cancelled first.
    func nextLoss(of topics: [Topic]) async -> ChangeLogError? {
        let (stream, continuation) = AsyncStream.makeStream(
            of: ChangeLogError.self, bufferingPolicy: .bufferingOldest(1))
        let number = state.withLock { state in
            state.lastNumber += 1
            state.waiting[state.lastNumber] = (Set(topics), continuation)
            return state.lastNumber
        }
        defer { state.withLock { _ = $0.waiting.removeValue(forKey: number) } }
        return await stream.first { _ in true }
    }

    /// Has nothing appended until ``goOn(in:)``.
    func halt(_ error: ChangeLogError) { state.withLock { $0.halt = error } }

    /// The history was seen in a cluster.
    func goOn(in cluster: String?) {
        state.withLock { state in
            state.halt = nil
            if let cluster { state.cluster = cluster }
        }
    }
}
