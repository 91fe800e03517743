import Kafka
import ThreadExecutor

extension Cluster {
    /// Runs a body with a client of the brokers, which is closed afterwards.
    ///
    /// - Parameter settings: properties of librdkafka besides the brokers.
    func withClient<Value>(
        _ kind: KafkaClient.Kind, _ settings: [(name: String, value: String)] = [], events: KafkaClient.Events = .none,
        _ body: (KafkaClient) async throws -> Value
    ) async throws -> Value {
        var properties = KafkaProperties()
        properties.set("bootstrap.servers", brokers)
        for (name, value) in settings { properties.set(name, value) }
        let thread = try DedicatedThread(name: "load-kafka")
        let client: KafkaClient
        do {
            client = try KafkaClient(kind, properties, events: events)
        } catch {
            await thread.close()
            throw error
        }
        let result: Result<Value, any Error>
        do {
            result = .success(try await body(client))
        } catch {
            result = .failure(error)
        }
        await client.close(on: thread)
        await thread.close()
        return try result.get()
    }
}
