import ChangeLog
import Kafka

/// What groups have committed, as retention must know it.
extension KafkaChangeLog {
    /// What stands beside the offset of a group that has joined and committed nothing.
    ///
    /// Kafka forgets a group without offsets, and retention must not (I1).
    private static let joined = "joined"

    /// Has the cluster remember a group that has committed nothing yet.
    ///
    /// - Parameter clerk: a client of the group.
    func remember(_ group: String, on topic: Topic, _ clerk: KafkaClient) async throws(ChangeLogError) {
        let positions = topics.positions(of: topic)
        try await calls.runAtCoordinator(of: group) { [client, topics] (limit) throws(KafkaError) in
            let known = try clerk.committed(positions, milliseconds: limit)
            var joined: [KafkaPosition] = []
            for position in known where position.offset < 0 {
                let range = try client.range(
                    topic: topics.name(of: topic), partition: position.partition, milliseconds: limit)
                joined.append(
                    KafkaPosition(position.topic, position.partition, offset: range.start, metadata: Self.joined))
            }
            guard !joined.isEmpty else { return }
            do throws(KafkaError) {
                try clerk.setCommitted(joined, milliseconds: limit)
            } catch {
                // A group that has members is remembered already: each of them came this way first.
                guard Self.hasMembers.contains(error.code) else { throw error }
            }
        }
    }

    private static let hasMembers: Set<KafkaErrorCode> = [.unknownMember, .illegalGeneration, .rebalanceInProgress]

    /// A group's committed offset; `nil` where it has joined and committed nothing.
    func committed(_ partition: TopicPartition, of group: String, _ clerk: KafkaClient) async throws(ChangeLogError)
        -> Int64?
    {
        let position = topics.position(partition)
        let answer = try await calls.runAtCoordinator(of: group, partition) { (limit) throws(KafkaError) in
            try clerk.committed([position], milliseconds: limit)
        }
        guard let found = answer.first, found.offset >= 0, found.metadata != Self.joined else { return nil }
        return found.offset
    }

    /// Removes records of a topic that are older than a moment, in microseconds since 1970.
    ///
    /// Kept all the same: what stands at or above its partition's floor, what a group of the topic has not worked on, each
    /// partition's newest record, and everything of the topics that are kept for ever, for which this traps. Any process may
    /// call it, and several at once.
    package func removeRecords(
        of topic: Topic, before time: Int64, floors: [Int: Int64]
    ) async throws(ChangeLogError) {
        precondition(!topic.isKeptForEver, "\(topic) is kept for ever")
        let positions = topics.positions(of: topic)
        // A record's time is in whole milliseconds.
        let (milliseconds, rest) = time.quotientAndRemainder(dividingBy: 1000)
        let moment = milliseconds + (rest > 0 ? 1 : 0)
        let name = topics.name(of: topic)
        let (found, groups) = try await calls.runAtCoordinator { [client, topics] (limit) throws(KafkaError) in
            let ends = try client.offsets(
                topic: name, partitions: 0..<Int32(positions.count), at: moment, milliseconds: limit
            ).map { $0.offset < 0 ? Int64.max : $0.offset }
            return (ends, try client.groups(milliseconds: limit).filter { topics.isGroup($0, on: topic) })
        }
        var ends = found
        for group in groups {
            for committed in try await committed(positions, of: group) {
                let place = Int(committed.partition)
                // A group that has committed nothing has worked on nothing.
                ends[place] = min(ends[place], max(committed.offset, 0))
            }
        }
        try await calls.runAtCoordinator { [client, ends] (limit) throws(KafkaError) in
            var removed: [KafkaPosition] = []
            for position in positions {
                let range = try client.range(topic: name, partition: position.partition, milliseconds: limit)
                let place = Int(position.partition)
                let end = min(ends[place], floors[place] ?? .max, range.end - 1)
                if end > range.start { removed.append(KafkaPosition(name, position.partition, offset: end)) }
            }
            if !removed.isEmpty { try client.removeRecords(before: removed, milliseconds: limit) }
        }
    }

    /// What any group has committed.
    private func committed(
        _ positions: [KafkaPosition], of group: String
    ) async throws(ChangeLogError) -> [KafkaPosition] {
        let clerk = try clerk(of: group)
        do throws(ChangeLogError) {
            let committed = try await calls.runAtCoordinator(of: group) { (limit) throws(KafkaError) in
                try clerk.client.committed(positions, milliseconds: limit)
            }
            await clerk.close()
            return committed
        } catch {
            await clerk.close()
            throw error
        }
    }

    /// A client that knows what a group has committed, and takes no part in it.
    func clerk(of group: String) throws(ChangeLogError) -> ClientService {
        let properties = ClientProperties(configuration: configuration).member(of: group)
        return try ClientService(.consumer, properties, name: "weir-kafka-off", logger: logger)
    }
}
