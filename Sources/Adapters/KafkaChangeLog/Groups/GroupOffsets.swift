import ChangeLog
import Kafka

/// Committed offsets of groups, and the deletion of records that respects them.
extension KafkaChangeLog {
    /// The metadata of an offset that marks a group as existing; the group has committed nothing.
    ///
    /// Kafka forgets a group without offsets, and retention must not (I1).
    private static let joined = "joined"

    /// Makes the cluster remember a group that has committed nothing yet.
    func remember(_ group: String, on topic: Topic, _ offsetsClient: KafkaClient) async throws(ChangeLogError) {
        let positions = topics.positions(of: topic)
        try await calls.runAtCoordinator(of: group) { [client, topics] (limit) throws(KafkaError) in
            let known = try offsetsClient.committed(positions, milliseconds: limit)
            var joined: [KafkaPosition] = []
            for position in known where position.offset < 0 {
                let range = try client.range(
                    topic: topics.name(of: topic), partition: position.partition, milliseconds: limit)
                joined.append(
                    KafkaPosition(position.topic, position.partition, offset: range.start, metadata: Self.joined))
            }
            guard !joined.isEmpty else { return }
            do throws(KafkaError) {
                try offsetsClient.setCommitted(joined, milliseconds: limit)
            } catch {
                // A group with members was remembered when the first of them joined.
                guard Self.hasMembers.contains(error.code) else { throw error }
            }
        }
    }

    private static let hasMembers: Set<KafkaErrorCode> = [.unknownMember, .illegalGeneration, .rebalanceInProgress]

    /// A group's committed offset; `nil` if it has committed none.
    func committed(
        _ partition: TopicPartition, of group: String, _ offsetsClient: KafkaClient
    ) async throws(ChangeLogError) -> Int64? {
        let position = topics.position(partition)
        let positions = try await calls.runAtCoordinator(of: group, partition) { (limit) throws(KafkaError) in
            try offsetsClient.committed([position], milliseconds: limit)
        }
        guard let found = positions.first, found.offset >= 0, found.metadata != Self.joined else { return nil }
        return found.offset
    }

    /// Deletes records of a topic that are older than a time, in microseconds since 1970.
    ///
    /// Kept are records at or above their partition's floor, records that a group of the topic has not committed, the newest
    /// record of each partition, and all records of permanent topics, for which this traps. Several processes may call it at once.
    package func removeRecords(
        of topic: Topic, before time: Int64, floors: [Int: Int64], consumers: [String]
    ) async throws(ChangeLogError) {
        precondition(!topic.isKeptForEver, "\(topic) is permanent")
        let positions = topics.positions(of: topic)
        // Kafka's times are in whole milliseconds: round up.
        let (milliseconds, rest) = time.quotientAndRemainder(dividingBy: 1000)
        let limitTime = milliseconds + (rest > 0 ? 1 : 0)
        let name = topics.name(of: topic)
        let (found, groups) = try await calls.runAtCoordinator { [client, topics] (limit) throws(KafkaError) in
            let ends = try client.offsets(
                topic: name, partitions: 0..<Int32(positions.count), at: limitTime, milliseconds: limit
            ).map { $0.offset < 0 ? Int64.max : $0.offset }
            return (ends, try client.groups(milliseconds: limit).filter { topics.isGroup($0, on: topic) })
        }
        var ends = found
        // A group that Kafka does not know has committed nothing.
        for group in Set(groups).union(consumers.map { topics.group($0, on: topic) }) {
            for committed in try await committed(positions, of: group) {
                let partition = Int(committed.partition)
                // A group that has committed nothing needs every record.
                ends[partition] = min(ends[partition], max(committed.offset, 0))
            }
        }
        try await calls.runAtCoordinator { [client, ends] (limit) throws(KafkaError) in
            var removed: [KafkaPosition] = []
            for position in positions {
                let range = try client.range(topic: name, partition: position.partition, milliseconds: limit)
                let partition = Int(position.partition)
                let end = min(ends[partition], floors[partition] ?? .max, range.end - 1)
                if end > range.start { removed.append(KafkaPosition(name, position.partition, offset: end)) }
            }
            if !removed.isEmpty { try client.removeRecords(before: removed, milliseconds: limit) }
        }
    }

    /// The committed offsets of any group.
    private func committed(
        _ positions: [KafkaPosition], of group: String
    ) async throws(ChangeLogError) -> [KafkaPosition] {
        let service = try offsetsClient(of: group)
        let result: Result<[KafkaPosition], ChangeLogError>
        do throws(ChangeLogError) {
            result = .success(
                try await calls.runAtCoordinator(of: group) { (limit) throws(KafkaError) in
                    try service.client.committed(positions, milliseconds: limit)
                })
        } catch {
            result = .failure(error)
        }
        await service.close()
        return try result.get()
    }

    /// A client that reads and writes a group's offsets without joining it.
    func offsetsClient(of group: String) throws(ChangeLogError) -> ClientService {
        let properties = ClientProperties(configuration: configuration).member(of: group)
        return try ClientService(.consumer, properties, name: "weir-kafka-off", logger: logger)
    }
}
