import ChangeLog
import Kafka
import ThreadExecutor

extension WeirCluster {
    /// Removes a topic and makes it again, with so many partitions.
    func makeAnew(_ topic: String, partitions: Int) async throws {
        let name = prefix + topic
        var properties = KafkaProperties()
        properties.set("bootstrap.servers", servers)
        let client = try KafkaClient(.producer, properties)
        let thread = try DedicatedThread(name: "admin")
        let result = await Result.capturing {
            try await thread.run {
                _ = try client.delete(topics: [name], milliseconds: 15_000)
                // The name is free when the brokers have forgotten it.
                while true {
                    do throws(KafkaError) {
                        _ = try client.describe(topic: name, milliseconds: 15_000)
                    } catch {
                        guard [.unknownTopicOrPartition, .unknownTopic].contains(error.code) else { throw error }
                        return
                    }
                }
            }
        }
        await client.close(on: thread)
        await thread.close()
        try result.get()
        // It ends with what is wrong with the topics, as may be meant.
        _ = try await CommandRun.run(
            "topics", "create", "--partitions", "\(partitions)", "--replication", "1", "--config", "weir.yaml",
            in: folder)
    }
}
