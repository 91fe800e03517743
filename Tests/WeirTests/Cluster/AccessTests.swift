import ChangeLog
import Foundation
import Kafka
import KafkaServer
import PostgresServer
import Testing

/// Brokers that let nobody in without a password, and allow each no more than they must.
@Suite(
    .timeLimit(.minutes(5)),
    .enabled(if: WeirCluster.skipReasonForOwnBrokers == nil, "\(WeirCluster.skipReasonForOwnBrokers ?? "")"))
struct AccessTests {
    private static let password = "hunter2-\(UUID().uuidString)"

    /// A broker with SCRAM for Weir, and a password of its own for itself and the tests.
    private static let settings = [
        "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256", "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.plaintext.plain.sasl.jaas.config":
            "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"broker\" "
            + "password=\"inner\" user_broker=\"inner\";",
        "listener.name.plaintext.scram-sha-256.sasl.jaas.config":
            "org.apache.kafka.common.security.scram.ScramLoginModule required;",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        // The controller is spoken to without a password, by the broker alone.
        "super.users": "User:broker;User:ANONYMOUS",
    ]

    private static let administrator = [
        "security.protocol": "sasl_plaintext", "sasl.mechanism": "PLAIN", "sasl.username": "broker",
        "sasl.password": "inner",
    ]

    /// What is missing is said with what to allow, and what was allowed is taken up.
    @Test func aRightThatIsMissingIsNamedAndTakenUpWhenItIsThere() async throws {
        let kafka = try await KafkaServer.start(settings: Self.settings, users: ["weir": Self.password])
        let result = await Result.capturing { try await Self.play(kafka) }
        await kafka.end()
        try result.get()
    }

    private static func play(_ kafka: KafkaServer) async throws {
        let secrets = try TestFolder()
        let file = try secrets.write(password + "\n", to: "password")
        let cluster = try await WeirCluster.prepare(
            .init(
                partitions: 2, kafka: kafka,
                settings: [
                    "kafka.security.protocol": "sasl_plaintext", "kafka.sasl.mechanism": "SCRAM-SHA-256",
                    "kafka.sasl.username": "weir", "kafka.sasl.password-file": file,
                ]))
        let topics = cluster.prefix
        try await change(cluster, KafkaAccessRule(.topic(topics), isPrefix: true, user: "weir", .all, isAllowed: true))
        try await change(cluster, KafkaAccessRule(.group(topics), isPrefix: true, user: "weir", .all, isAllowed: true))
        try await cluster.createTopics()
        try await cluster.command("migrate")
        let members = try await cluster.startOneOfEach()
        let (gateway, ordering, ingest) = (members[0], members[1], members[2])
        var device = PatientDevice(port: gateway.port)
        try await device.write()

        for (resource, operation, member, words) in [
            (KafkaAccessRule.Resource.topic(topics + "uploads"), KafkaAccessRule.Operation.write, gateway, "Write on the topic"),
            (.topic(topics + "changes"), .write, ingest, "Write on the topic"),
            (.topic(topics + "changes"), .read, ordering, "Read on the topic"),
            (.group(topics + "ingest.uploads"), .read, ingest, "Read and Describe on the group \(topics)ingest.uploads"),
            (.topic(topics + "changes"), .describe, ordering, "Describe on the topic"),
        ] {
            let denial = KafkaAccessRule(resource, user: "weir", operation, isAllowed: false)
            try await change(cluster, denial)
            let before = device
            async let during = before.written()
            await member.expectLogged(words)
            try await member.untilUnready(words)
            try await change(cluster, denial, isRemoved: true)
            device = try await during
            for member in members { try await member.untilReadyAgain() }
        }

        let fresh = try await device.drained()
        for member in members.reversed() { await member.stop() }
        try await cluster.expectRows(fresh)
        for member in members { #expect(!member.process.log.contains { $0.contains(password) }) }
    }

    private static func change(_ cluster: WeirCluster, _ rule: KafkaAccessRule, isRemoved: Bool = false) async throws {
        try await cluster.administering(administrator) { client in
            if isRemoved {
                try client.remove(rule, milliseconds: 15_000)
            } else {
                try client.add(rule, milliseconds: 15_000)
            }
        }
    }
}
