import AsyncPrimitives
import ChangeLog
import Kafka
import KafkaChangeLog
import Testing
import ThreadExecutor

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

    /// Appends records of any content.
    static func append(_ records: [NewRecord], to cluster: WeirCluster) async throws {
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

extension WeirCluster {
    /// Deletes a topic and creates it again.
    func recreate(_ topic: String, partitions: Int) async throws {
        try await remove([topic])
        // It fails where the topics do not match, which some tests intend.
        _ = try await CommandRun.run(
            "topics", "create", "--partitions", "\(partitions)", "--replication", "1", "--config", "weir.yaml",
            in: folder)
    }

    /// Deletes topics, and returns when their names are free.
    func remove(_ topics: [String]) async throws {
        let names = topics.map { prefix + $0 }
        try await administering { client in
            _ = try client.delete(topics: names, milliseconds: 15_000)
            for name in names {
                // The name is free when the brokers have forgotten it.
                while true {
                    do throws(KafkaError) {
                        _ = try client.describe(topic: name, milliseconds: 15_000)
                    } catch {
                        guard [.unknownTopicOrPartition, .unknownTopic].contains(error.code) else { throw error }
                        break
                    }
                }
            }
        }
    }

    /// Lends a client that may do everything, on a thread of its own.
    func administering<Value: Sendable>(
        _ properties: [String: String] = [:], _ body: @escaping @Sendable (KafkaClient) throws -> Value
    ) async throws -> Value {
        var all = KafkaProperties()
        all.set("bootstrap.servers", servers)
        for (name, value) in properties { all.set(name, value) }
        let client = try KafkaClient(.producer, all)
        let thread = try DedicatedThread(name: "admin")
        let result = await Result.capturing { try await thread.run { try body(client) } }
        await client.close(on: thread)
        await thread.close()
        return try result.get()
    }
}
