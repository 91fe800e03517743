import ChangeLog
import Synchronization

/// Keeps a process from appending to topics that were recreated, or to another cluster's.
///
/// librdkafka 2.0 does not report the ids of topics. Two things show the change: a partition's end offset, which never decreases
/// otherwise, and the cluster's id. Whether another cluster has the same epoch is decided by the caller, who reads `control`.
final class TopicGuard: Sendable {
    private struct State {
        /// The highest known end of each partition.
        var ends: [Topic: [Int64]]
        /// Topics that have lost records which cannot be rebuilt.
        var losses: [Topic: ChangeLogError] = [:]
        /// Why all appends are suspended.
        var suspension: ChangeLogError?
        /// The id of the cluster that has the epoch.
        var cluster: String?
        var lastNumber = 0
        /// The callers of ``nextLoss(of:)``: one for each stage.
        var waiting: [Int: (topics: Set<Topic>, stream: AsyncStream<ChangeLogError>.Continuation)] = [:]
    }

    /// What was known when records were enqueued, to check their acknowledgement.
    struct Ticket: Sendable {
        fileprivate let destinations: [TopicPartition]
        /// The known end of each record's partition.
        fileprivate let floors: [Int64]
    }

    private let state: Mutex<State>
    private let topics: TopicNames

    init(_ topics: TopicNames, cluster: String?) {
        self.topics = topics
        let ends = Topic.allCases.map { ($0, [Int64](repeating: 0, count: topics.partitionCount(of: $0))) }
        state = Mutex(State(ends: Dictionary(uniqueKeysWithValues: ends), cluster: cluster))
    }

    // MARK: Appends

    /// Allows records to be enqueued, or throws.
    ///
    /// - Parameter cluster: the id of the cluster that the producer's client is connected to, if it is known yet.
    func admit(_ records: [NewRecord], cluster: String?) throws(ChangeLogError) -> Ticket {
        let ticket: Result<Ticket, ChangeLogError> = state.withLock { state in
            if let refusal = Self.refusal(cluster, state) { return .failure(refusal) }
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

    /// Checks the offsets of acknowledged records.
    ///
    /// - Throws: if an offset is below the partition's known end. Records enqueued later may have been written, too.
    func check(_ offsets: [Int64], _ ticket: Ticket, cluster: String?) throws(ChangeLogError) {
        let refusal: ChangeLogError? = state.withLock { state in
            if let refusal = Self.refusal(cluster, state) { return refusal }
            var refusal: ChangeLogError?
            for (index, offset) in zip(ticket.destinations.indices, offsets) {
                let partition = ticket.destinations[index]
                if offset < ticket.floors[index] {
                    refusal = refusal ?? recordLoss(of: partition, end: offset, known: ticket.floors[index], &state)
                } else {
                    raise(partition, to: offset + 1, &state)
                }
            }
            return refusal
        }
        if let refusal { throw refusal }
    }

    /// Why no append is allowed.
    private static func refusal(_ cluster: String?, _ state: State) -> ChangeLogError? {
        if let suspension = state.suspension { return suspension }
        guard let cluster, let own = state.cluster, cluster != own else { return nil }
        return ChangeLogError(
            .other,
            message: """
                the brokers belong to cluster \(cluster), not to \(own): appends are suspended until control shows that they \
                have the same epoch
                """, isRetriable: true)
    }

    /// Fails every append until ``resume(in:)``.
    func suspend(_ error: ChangeLogError) { state.withLock { $0.suspension = error } }

    /// Allows appends, since `control` in this cluster has the epoch.
    func resume(in cluster: String?) {
        state.withLock { state in
            state.suspension = nil
            if let cluster { state.cluster = cluster }
        }
    }

    // MARK: Ends

    /// Records an end that the partition has had.
    func record(end: Int64, of partition: TopicPartition) {
        state.withLock { raise(partition, to: end, &$0) }
    }

    /// The known ends of a topic's partitions.
    func ends(of topic: Topic) -> [Int64] { state.withLock { $0.ends[topic] ?? [] } }

    /// Compares a topic's ends with those that were known before they were read.
    func compare(_ topic: Topic, _ ends: [Int64], with known: [Int64]) {
        state.withLock { state in
            var isComplete = true
            for (number, end) in ends.enumerated() {
                let partition = TopicPartition(topic, number)
                if end < known[number] {
                    isComplete = false
                    _ = recordLoss(of: partition, end: end, known: known[number], &state)
                } else {
                    raise(partition, to: end, &state)
                }
            }
            if isComplete { state.losses[topic] = nil }
        }
    }

    /// Records that the topic does not exist.
    func recordMissing(_ topic: Topic) {
        state.withLock { state in
            let error = ChangeLogError(
                .other,
                message: "the topic \(topics.name(of: topic)) no longer exists: \(Self.advice(topic))",
                isRetriable: true)
            if Self.isPermanent(topic) { notify(topic, error, isPermanent: true, &state) }
        }
    }

    /// Records that a partition ends below its known end; returns the error if its records cannot be rebuilt.
    private func recordLoss(
        of partition: TopicPartition, end: Int64, known: Int64, _ state: inout State
    ) -> ChangeLogError? {
        let topic = partition.topic
        let error = ChangeLogError(
            .other, partition: partition,
            message: """
                the topic \(topics.name(of: topic)) was recreated or lost records: its end was \(known) and is now \
                \(end): \(Self.advice(topic))
                """, isRetriable: true)
        let isPermanent = Self.isPermanent(topic)
        // Appends to a topic that is rebuilt continue at its present end.
        if !isPermanent { state.ends[topic]?[partition.partition] = end }
        notify(topic, error, isPermanent: isPermanent, &state)
        return isPermanent ? error : nil
    }

    private func notify(_ topic: Topic, _ error: ChangeLogError, isPermanent: Bool, _ state: inout State) {
        // Only of a new loss.
        if isPermanent, state.losses.updateValue(error, forKey: topic) != nil { return }
        for waiting in state.waiting.values where waiting.topics.contains(topic) { waiting.stream.yield(error) }
    }

    private func raise(_ partition: TopicPartition, to end: Int64, _ state: inout State) {
        guard let known = state.ends[partition.topic]?[partition.partition], known < end else { return }
        state.ends[partition.topic]?[partition.partition] = end
    }

    /// Whether the topic's records cannot be rebuilt.
    private static func isPermanent(_ topic: Topic) -> Bool { topic == .uploads || topic == .changes }

    private static func advice(_ topic: Topic) -> String {
        switch topic {
        case .uploads:
            """
            appends to it are suspended until its ends are above the offsets that were ordered; restore it, or append records \
            with any content to it until they are
            """
        case .changes:
            "appends to it are suspended until it is restored; or start with a new epoch in empty topics and tables"
        case .ordered, .deadLetters, .control: "its results will be rebuilt where they are needed"
        }
    }

    // MARK: Losses

    /// Why one of the topics cannot be used; `nil` if all can.
    func fault(of topics: [Topic]) -> ChangeLogError? {
        state.withLock { state in
            if let suspension = state.suspension { return suspension }
            for topic in topics {
                if let loss = state.losses[topic] { return loss }
            }
            return nil
        }
    }

    /// Waits for the next loss of records of one of the topics; `nil` when the task is cancelled.
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
}
