import AsyncPrimitives
import ChangeLog
import ChangeLogConformance
import Configuration
import Foundation
import Kafka
import KafkaChangeLog
import KafkaServer
import MockKafka
import Synchronization
import ThreadExecutor

/// Topics with a unique prefix in a cluster, created when the log is opened first.
final class KafkaLogHarness: LogUnderTest {
    let prefix = "test-\(UUID().uuidString)."
    let mock: MockCluster?
    private let own: KafkaServer?
    private let hasTopics = Mutex(false)

    private init(mock: MockCluster?, own: KafkaServer?) {
        self.mock = mock
        self.own = own
    }

    /// Topics in the cluster that the tests use.
    static func make() async throws -> KafkaLogHarness {
        KafkaLogHarness(mock: TestCluster.isReal ? nil : MockCluster(), own: try await TestCluster.own())
    }

    /// Topics in a mock cluster of the test.
    convenience init(mock: MockCluster) { self.init(mock: mock, own: nil) }

    /// Topics on a broker of the test.
    convenience init(broker: KafkaServer) { self.init(mock: nil, own: broker) }

    var servers: [String] {
        let servers = mock?.servers ?? own?.servers ?? TestCluster.named
        return (servers ?? "").split(separator: ",").map(String.init)
    }

    /// Settings with short delays.
    func configuration(_ settings: LogSettings = LogSettings()) -> KafkaChangeLogConfiguration {
        var configuration = KafkaChangeLogConfiguration(servers: servers, topicPrefix: prefix)
            .with(\.maximumRecordSize, settings.maximumRecordSize).with(\.queueBytes, settings.queueBytes)
        for (name, value) in [
            ("reconnect.backoff.ms", "10"), ("reconnect.backoff.max.ms", "50"), ("retry.backoff.ms", "10"),
            ("heartbeat.interval.ms", "50"),
            // The mock cluster lets a fetch wait for this time even if there are new records.
            ("fetch.wait.max.ms", "20"),
        ] {
            do {
                try configuration.pass(KafkaProperty(name, Secret(value)))
            } catch {
                preconditionFailure("\(error)")
            }
        }
        if mock != nil {
            configuration.acceptsProducersTime = true
            // The mock cluster's groups wait 3 seconds for the first members, whose sessions must last longer.
            configuration.sessionTimeout = .seconds(5)
        }
        return configuration
    }

    func open(_ settings: LogSettings) async throws -> KafkaChangeLog {
        let isNew = hasTopics.withLock { hasTopics in
            defer { hasTopics = true }
            return !hasTopics
        }
        if isNew { try await createTopics(partitions: settings.partitions, settings) }
        return try await KafkaChangeLog(configuration(settings))
    }

    func createTopics(partitions: Int, _ settings: LogSettings = LogSettings()) async throws {
        guard let mock else {
            return try await KafkaTopics(configuration(settings)).create(plan(partitions))
        }
        for topic in Topic.allCases {
            mock.createTopic(prefix + topic.rawValue, partitions: topic == .control ? 1 : partitions)
        }
    }

    private func plan(_ partitions: Int) -> KafkaTopics.Plan {
        KafkaTopics.Plan(partitions: partitions, replicationFactor: 1, minimumInSyncReplicas: 1)
    }

    func close(_ log: KafkaChangeLog) async throws { await log.close() }

    func whileWritesStall(_ log: KafkaChangeLog, _ body: () async throws -> Void) async throws {
        if let mock {
            mock.goDown()
            defer { mock.comeUp() }
            return try await body()
        }
        guard let broker = own else { preconditionFailure("skipped where brokers cannot be paused") }
        try await broker.pause()
        let result = await Result.capturing { try await body() }
        try await broker.resume()
        try result.get()
    }

    func whileAppendsFail(_ log: KafkaChangeLog, _ body: () async throws -> Void) async throws {
        if let mock {
            mock.failRequests(0, codes: Array(repeating: MockCluster.topicForbidden, count: 3))
            let result = await Result.capturing { try await body() }
            // A producer that has failed does not wait for its requests in flight, and the mock cluster, which does not check
            // sequence numbers, would write those that it reads after the errors are cleared. It reads everything that has arrived
            // on all connections in turns: what was sent before the first request was read when the second is answered.
            for _ in 1...2 { _ = try await log.range(of: TopicPartition(.uploads, 0)) }
            mock.clearFailures(of: 0)
            return try result.get()
        }
        try await whileUploadsHave("max.message.bytes", "1", failing: .messageTooLarge, body)
    }

    func removeRecords(
        of topic: Topic, before time: Int64, floors: [Int: Int64], consumers: [String], from log: KafkaChangeLog
    ) async throws {
        try await log.removeRecords(of: topic, before: time, floors: floors, consumers: consumers)
    }

    /// Deletes the topics from a shared cluster.
    func remove() async throws {
        guard mock == nil, hasTopics.withLock({ $0 }) else { return }
        let names = Topic.allCases.map { prefix + $0.rawValue }
        try await administering { client in _ = try client.delete(topics: names, milliseconds: 15_000) }
    }

    /// Runs a body with another setting of `uploads`, after the broker has applied it.
    private func whileUploadsHave(
        _ name: String, _ value: String, failing code: KafkaErrorCode, _ body: () async throws -> Void
    ) async throws {
        let topic = prefix + "uploads"
        let settings = try await administering { client in
            try client.settings(ofTopics: [topic], milliseconds: 15_000)[topic] ?? [:]
        }
        let kept = [
            "cleanup.policy", "retention.ms", "retention.bytes", "message.timestamp.type", "max.message.bytes",
            "min.insync.replicas", "unclean.leader.election.enable", "compression.type",
        ].map { (name: $0, value: settings[$0] ?? "") }
        let changed = kept.map { $0.name == name ? (name: name, value: value) : $0 }
        try await administering { client in
            try client.replaceSettings(ofTopic: topic, changed, milliseconds: 15_000)
            // A partition that the suite does not use shows when the broker has applied it.
            try Self.produce(to: topic, client: client, servers: self.servers, until: code)
        }
        let result = await Result.capturing { try await body() }
        try await administering { client in
            try client.replaceSettings(ofTopic: topic, kept, milliseconds: 15_000)
        }
        try result.get()
    }

    /// Produces until the expected error.
    private static func produce(
        to topic: String, client: KafkaClient, servers: [String], until code: KafkaErrorCode
    ) throws {
        while true {
            _ = client.produce([(UInt(1), KafkaRecord(topic: topic, partition: 3, key: [], value: [0]))])
            var report: KafkaEvent.Delivery?
            while report == nil {
                guard let event = try client.poll() else { continue }
                if event.kind == .deliveries { report = event.deliveries().first }
            }
            if let error = report?.error, error.code == code { return }
        }
    }

    /// Runs a body with a client on a dedicated thread.
    func administering<Value: Sendable>(
        _ body: @escaping @Sendable (KafkaClient) throws -> Value
    ) async throws -> Value {
        var properties = KafkaProperties()
        properties.set("bootstrap.servers", servers.joined(separator: ","))
        properties.set("acks", "all")
        properties.set("retries", "0")
        properties.set("linger.ms", "0")
        let client = try KafkaClient(.producer, properties, events: .deliveries)
        let thread = try DedicatedThread(name: "admin")
        let result = await Result.capturing { try await thread.run { try body(client) } }
        await client.close(on: thread)
        await thread.close()
        return try result.get()
    }
}
