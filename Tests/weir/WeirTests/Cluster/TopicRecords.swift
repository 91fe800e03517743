import ChangeLog
import KafkaChangeLog
import Testing

/// A copy of the records of a topic.
struct TopicRecords: Sendable {
    let topic: Topic
    /// The records of each partition, in their order.
    let partitions: [[LogRecord]]

    /// Reads a topic whole.
    static func read(_ topic: Topic, of cluster: WeirCluster) async throws -> TopicRecords {
        try await withLog(of: cluster) { log in
            var partitions: [[LogRecord]] = []
            for number in 0..<(topic == .control ? 1 : log.partitionCount) {
                let partition = TopicPartition(topic, number)
                let range = try await log.range(of: partition)
                #expect(range.start == 0, "nothing was removed from \(partition)")
                let reader = try await log.reader(of: partition, from: range.start)
                var records: [LogRecord] = []
                while records.count < range.end { records += try await reader.next(maximumBytes: 1 << 20) }
                await reader.close()
                partitions.append(records)
            }
            return TopicRecords(topic: topic, partitions: partitions)
        }
    }

    /// Appends the records to the topic as it is now; in an empty one each gets the offset that it had.
    func restore(to cluster: WeirCluster) async throws {
        try await Self.append(
            partitions.enumerated().flatMap { number, records in
                records.map { NewRecord(to: TopicPartition(topic, number), key: $0.key, value: $0.value) }
            }, to: cluster)
    }

    /// Appends as many records as the copy has, with any content.
    func fill(_ cluster: WeirCluster) async throws {
        try await Self.append(
            partitions.enumerated().flatMap { number, records in
                records.map { _ in NewRecord(to: TopicPartition(topic, number), value: [0]) }
            }, to: cluster)
    }

    private static func append(_ records: [NewRecord], to cluster: WeirCluster) async throws {
        try await withLog(of: cluster) { log in
            let producer = try await log.producer()
            try await producer.append(records)
            await producer.close()
        }
    }

    private static func withLog<Value: Sendable>(
        of cluster: WeirCluster, _ body: (KafkaChangeLog) async throws -> Value
    ) async throws -> Value {
        let servers = cluster.servers.split(separator: ",").map(String.init)
        let log = try await KafkaChangeLog(KafkaChangeLogConfiguration(servers: servers, topicPrefix: cluster.prefix))
        let result = await Result.capturing { try await body(log) }
        await log.close()
        return try result.get()
    }
}
