import AsyncPrimitives
import ChangeLog
import Foundation
import Kafka
import KafkaServer
import PostgresServer
import Testing

/// Brokers with passwords and access rules that allow no more than each role needs.
@Suite(
    .timeLimit(.minutes(5)),
    .enabled(if: WeirCluster.skipReasonForOwnBrokers == nil, "\(WeirCluster.skipReasonForOwnBrokers ?? "")"))
struct AccessTests {
    private static let password = "hunter2-\(UUID().uuidString)"

    /// A broker with a password for Weir, and one for itself and the tests.
    private static let settings = [
        "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN", "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.plaintext.plain.sasl.jaas.config":
            "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"broker\" "
            + "password=\"inner\" user_broker=\"inner\" user_weir=\"\(password)\";",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        // Only the broker uses the controller, without a password.
        "super.users": "User:broker;User:ANONYMOUS",
    ]

    private static let administrator = [
        "security.protocol": "sasl_plaintext", "sasl.mechanism": "PLAIN", "sasl.username": "broker",
        "sasl.password": "inner",
    ]

    /// The message names the missing right, and the process continues once it is granted.
    @Test func aMissingRightIsReportedAndUsedOnceItIsGranted() async throws {
        let kafka = try await KafkaServer.start(settings: Self.settings)
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
                    "kafka.security.protocol": "sasl_plaintext", "kafka.sasl.mechanism": "PLAIN",
                    "kafka.sasl.username": "weir", "kafka.sasl.password-file": file,
                ]))
        let topics = cluster.prefix
        try await change(cluster, KafkaAccessRule(.topic(topics), isPrefix: true, user: "weir", .all, isAllowed: true))
        try await change(cluster, KafkaAccessRule(.group(topics), isPrefix: true, user: "weir", .all, isAllowed: true))
        try await cluster.createTopics()
        try await cluster.command("migrate")
        let members = try await cluster.startOneOfEach()
        let (gateway, ordering, ingest) = (members[0], members[1], members[2])
        var device = CountingDevice(port: gateway.port)
        try await device.write()

        let cases: [(KafkaAccessRule.Resource, KafkaAccessRule.Operation, ClusterMember, String)] = [
            (.topic(topics + "uploads"), .write, gateway, "Write on the topic"),
            (.topic(topics + "changes"), .write, ingest, "Write on the topic"),
            (.topic(topics + "changes"), .read, ordering, "Read on the topic"),
            (.group(topics + "ingest.uploads"), .read, ingest, "on the group \(topics)ingest.uploads"),
        ]
        for (resource, operation, member, words) in cases {
            let denial = KafkaAccessRule(resource, user: "weir", operation, isAllowed: false)
            let (before, flag) = (device, StopFlag())
            // Brokers apply a rule some time after they have accepted it.
            async let during = before.written(until: flag)
            try await change(cluster, denial)
            await member.expectLogged(words)
            try await member.untilUnready(words)
            try await change(cluster, denial, isRemoved: true)
            flag.set()
            device = try await during
            for member in members { try await member.untilReadyAgain() }
        }

        // Running processes do not need this right; starting ones do.
        let denial = KafkaAccessRule(.topic(topics + "changes"), user: "weir", .describe, isAllowed: false)
        try await change(cluster, denial)
        await ordering.expectLogged("The end offsets of a topic cannot be read")
        let late = try cluster.launch(.ordering, named: "late")
        await late.expectLogged("Describe on the topic")
        try await late.untilUnready("Describe on the topic")
        try await change(cluster, denial, isRemoved: true)
        try await late.untilReady()
        try await device.write()
        await late.stop()

        let fresh = try await device.drained()
        for member in members.reversed() { await member.stop() }
        try await cluster.expectRows(fresh)
        for member in members + [late] { #expect(!member.process.log.contains { $0.contains(password) }) }
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
