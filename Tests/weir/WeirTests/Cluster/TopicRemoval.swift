import ChangeLog
import Kafka
import ThreadExecutor

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
