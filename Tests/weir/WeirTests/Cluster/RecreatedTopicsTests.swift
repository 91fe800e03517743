import AsyncPrimitives
import ChangeLog
import Foundation
import KafkaServer
import PostgresServer
import Testing

/// Topics are deleted and recreated, or other brokers take their address, while processes run.
@Suite(
    .timeLimit(.minutes(5)),
    .enabled(if: WeirCluster.skipReason == nil, "\(WeirCluster.skipReason ?? "")"))
struct RecreatedTopicsTests {
    /// Each topic in turn, under the same processes; `ordered` is derived again, the others are restored, and all continue.
    @Test func aRecreatedTopicIsNoticedAndNothingAcknowledgedIsLost() async throws {
        let cluster = try await WeirCluster.make(.init(partitions: 2))
        let members = try await cluster.startOneOfEach()
        let (gateway, ordering, ingest, fanOut) = (members[0], members[1], members[2], members[3])
        var device = CountingDevice(port: gateway.port)
        try await device.write()
        let control = try await TopicRecords.read(.control, of: cluster)

        // Streams are rebuilt from the tables, and results continue in the new topic.
        try await cluster.recreate("ordered", partitions: 2)
        await ordering.expectLogged("The topic ordered was recreated")
        await fanOut.expectLogged("Stream must be rebuilt")
        for member in members { try await member.untilReadyAgain() }
        try await device.write()
        _ = try await device.drained()

        // The offsets of the new topic would count as already processed.
        let uploads = try await TopicRecords.read(.uploads, of: cluster)
        try await cluster.recreate("uploads", partitions: 2)
        for member in [gateway, ingest] {
            try await member.untilUnready("uploads was recreated")
            await member.expectLogged("any content to it")
        }
        try await Self.expectRefusal(gateway)
        try await uploads.fill(cluster)
        for member in members { try await member.untilReadyAgain() }
        try await device.write()

        // Uploads are accepted, and wait.
        let changes = try await TopicRecords.read(.changes, of: cluster)
        try await cluster.recreate("changes", partitions: 2)
        for member in [ordering, ingest] { try await member.untilUnready("changes was recreated") }
        let before = device
        async let during = before.written()
        try await changes.restore(to: cluster)
        device = try await during
        for member in members { try await member.untilReadyAgain() }

        try await cluster.recreate("control", partitions: 1)
        for member in members { try await member.untilUnready("control does not hold this history any more") }
        try await Self.expectRefusal(gateway)
        try await control.restore(to: cluster)
        for member in members { try await member.untilReadyAgain() }
        try await device.write()

        let fresh = try await device.drained()
        for member in members.reversed() { await member.stop() }
        try await cluster.expectRows(fresh)
    }

    @Test func anotherHistoryInRecreatedTopicsEndsEveryProcess() async throws {
        let cluster = try await WeirCluster.make(.init(partitions: 2))
        let members = try await cluster.startOneOfEach()
        var device = CountingDevice(port: members[0].port)
        try await device.write()
        try await cluster.remove(Topic.allCases.map(\.rawValue))
        for member in members { try await member.untilUnready("control does not hold this history any more") }
        try await cluster.createTopics()
        try await Self.expectRefusal(members[0])
        // The tables have the epoch of the deleted topics, so migrate begins no other history.
        let migration = try await CommandRun.run("migrate", "--config", "weir.yaml", in: cluster.folder)
        #expect(migration.code == 1)
        #expect(migration.errors.contains("the tables have epoch "), "\(migration.errors)")
        #expect(try await TopicRecords.read(.control, of: cluster).partitions == [[]])
        try await Self.beginAnotherHistory(cluster)
        try await Self.expectEnd(members)
    }

    @Test(
        .enabled(
            if: WeirCluster.skipReasonForOwnBrokers == nil, "\(WeirCluster.skipReasonForOwnBrokers ?? "")"))
    func otherBrokersAtTheSameAddressGetNoRecords() async throws {
        let kafka = try await KafkaServer.start()
        let result = await Result.capturing {
            let cluster = try await WeirCluster.make(.init(partitions: 2, kafka: kafka))
            let members = try await cluster.startOneOfEach()
            var device = CountingDevice(port: members[0].port)
            try await device.write()
            try await kafka.replace()
            for member in members { try await member.untilUnready("control does not hold this history any more") }
            try await cluster.createTopics()
            try await Self.expectRefusal(members[0])
            try await Self.beginAnotherHistory(cluster)
            try await Self.expectEnd(members)
            for topic in [Topic.uploads, .changes, .ordered] {
                #expect(try await TopicRecords.read(topic, of: cluster).partitions == [[], []], "\(topic)")
            }
        }
        await kafka.end()
        try result.get()
    }

    /// Expects an upload to be rejected.
    private static func expectRefusal(_ gateway: ClusterMember) async throws {
        var device = TestDevice(port: gateway.port, syncID: "abc", knowledgeID: "refused")
        let failure = await #expect(throws: DeviceClient.Failure.self) {
            _ = try await device.sync([TestDevice.change("refused", ["name": "x"])])
        }
        #expect(failure?.status == 503, "\(failure?.description ?? "")")
    }

    /// Begins a history in the topics, with tables of its own.
    private static func beginAnotherHistory(_ cluster: WeirCluster) async throws {
        let database = try await TestDatabase.make(on: cluster.database.server)
        try await cluster.command("migrate", "--postgres.shards", database.connectionString)
    }

    /// Expects the processes to exit and to log what to do.
    private static func expectEnd(_ members: [ClusterMember]) async throws {
        for member in members {
            #expect(await member.process.untilEnd() == 1)
            await member.expectLogged("start this process again to take part in the new history")
        }
    }
}
