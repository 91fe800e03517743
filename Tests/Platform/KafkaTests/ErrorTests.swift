import Kafka
import MockKafka
import Testing
import ThreadExecutor

@Suite(.timeLimit(.minutes(5))) struct ErrorTests {
    @Test func errorHasCodeNameAndRetriability() {
        let passing = KafkaError(.allBrokersDown, message: "no broker responds")
        #expect(passing.isRetriable)
        #expect(!passing.isFatal)
        #expect(passing.description == "_ALL_BROKERS_DOWN: no broker responds")
        #expect(!KafkaError(.topicForbidden, message: "").isRetriable)
        #expect(KafkaError(.fatal, message: "").isFatal)
    }

    @Test func invalidPropertyIsNamed() {
        var properties = KafkaProperties()
        properties.set("no.such.property", "1")
        let unknown = #expect(throws: KafkaError.self) { try properties.check() }
        #expect(unknown?.message.contains("no.such.property") == true)
        properties = KafkaProperties()
        properties.set("socket.timeout.ms", "many")
        let wrong = #expect(throws: KafkaError.self) { try properties.check() }
        #expect(wrong?.message.contains("socket.timeout.ms") == true)
    }

    @Test func secretsAreNeverShown() {
        var properties = KafkaProperties()
        properties.set("sasl.username", "weir")
        properties.set("sasl.password", "hunter2", isSecret: true)
        #expect(properties.description == "sasl.username=weir sasl.password=***")
        #expect(properties["sasl.password"] == nil)
        // librdkafka's text has the value that it rejects.
        properties.set("socket.timeout.ms", "hunter2", isSecret: true)
        let error = #expect(throws: KafkaError.self) { try properties.check() }
        #expect(error.map { "\($0)".contains("hunter2") } == false)
    }

    @Test func contradictoryPropertiesAreRejected() {
        var properties = KafkaProperties()
        properties.set("enable.idempotence", "true")
        properties.set("acks", "1")
        let error = #expect(throws: KafkaError.self) { _ = try KafkaClient(.producer, properties) }
        #expect(error?.code == .invalidArgument)
        #expect(error?.message.contains("acks") == true)
    }

    @Test func unavailableClusterIsRetriableAndClosedClientFails() async throws {
        let cluster = MockCluster()
        cluster.createTopic("known", partitions: 3)
        var properties = KafkaProperties()
        properties.set("bootstrap.servers", cluster.servers)
        let client = try KafkaClient(.producer, properties)
        let thread = try DedicatedThread(name: "test")
        let known = try await thread.run { () throws(KafkaError) in
            try client.describe(topic: "known", milliseconds: 30_000)
        }
        #expect(known.partitionCount == 3)
        cluster.goDown()
        let error = await #expect(throws: KafkaError.self) {
            try await thread.run { () throws(KafkaError) in
                _ = try client.range(topic: "known", partition: 0, milliseconds: 100)
            }
        }
        #expect(error?.isRetriable == true)
        await client.close(on: thread)
        #expect(throws: KafkaError(.closed, message: "the client was closed")) { try client.unsubscribe() }
        await thread.close()
    }
}
