import AsyncPrimitives
import ChangeLog
import Foundation
import KafkaServer
import PostgresServer
import Testing

/// Broker or database are unavailable for a while: processes report it, lose nothing, and continue without a restart.
@Suite(
    .timeLimit(.minutes(5)),
    .enabled(if: WeirCluster.skipReasonForOwnBrokers == nil, "\(WeirCluster.skipReasonForOwnBrokers ?? "")"))
struct OutageTests {
    @Test func processesWaitForABrokerThatWasKilled() async throws {
        let kafka = try await KafkaServer.start()
        let result = await Result.capturing {
            try await Self.play(.init(partitions: 2, kafka: kafka)) { _ in
                try await kafka.kill()
            } unready: { member in
                try await member.untilUnready("kafka")
            } end: { _ in
                try await kafka.startAgain()
            }
        }
        await kafka.end()
        try result.get()
    }

    @Test func processesWaitForADatabaseInRecovery() async throws {
        let postgres = try await PostgresServer.start()
        let result = await Result.capturing {
            try await Self.play(.init(partitions: 2, postgres: postgres)) { _ in
                try await postgres.stop()
                try Data().write(to: URL(fileURLWithPath: postgres.folder + "/data/standby.signal"))
                try await postgres.startAgain()
            } unready: { member in
                try await member.untilUnready("read-only")
            } end: { cluster in
                _ = try await cluster.database.query("SELECT pg_promote()")
            }
        }
        await postgres.end()
        try result.get()
    }

    /// Nothing but a rebuild needs the tables, so a restart during an outage stops no pulls.
    @Test func aFanOutThatStartsWithoutTheDatabaseServesTheStreamsThatItHas() async throws {
        let postgres = try await PostgresServer.start()
        let result = await Result.capturing {
            let cluster = try await WeirCluster.make(.init(partitions: 2, postgres: postgres))
            let members = try await cluster.startOneOfEach()
            let gateway = members[0]
            let fanOut = try #require(members.first { $0.role == .fanout })
            var device = CountingDevice(port: gateway.port)
            try await device.write()
            try await postgres.stop()
            await fanOut.kill()
            try fanOut.startAgain()
            try await fanOut.untilReady()
            try await fanOut.untilReadyAgain()
            _ = try await device.drained()
            // One without its file waits for the tables, and says so.
            await fanOut.kill()
            try FileManager.default.removeItem(atPath: fanOut.data)
            try fanOut.startAgain()
            try await fanOut.untilUnready("stream")
            try await postgres.startAgain()
            try await fanOut.untilReadyAgain()
            let fresh = try await device.drained()
            for member in members.reversed() { await member.stop() }
            try await cluster.expectRows(fresh)
        }
        await postgres.end()
        try result.get()
    }

    /// A device writes before, during and after an outage.
    private static func play(
        _ plan: WeirCluster.Plan, begin: (WeirCluster) async throws -> Void,
        unready: @escaping @Sendable (ClusterMember) async throws -> Void, end: (WeirCluster) async throws -> Void
    ) async throws {
        let cluster = try await WeirCluster.make(plan)
        let members = try await cluster.startOneOfEach()
        let port = members[0].port
        var device = CountingDevice(port: port)
        try await device.write()
        try await begin(cluster)
        let before = device
        async let during = before.written()
        // The worker that owns the device's partition reports that it is not ready.
        try await withThrowingTaskGroup(of: Void.self) { group in
            for member in members where member.role != .ingest { group.addTask { try await unready(member) } }
            _ = try await group.next()
            group.cancelAll()
        }
        try await end(cluster)
        device = try await during
        for member in members { try await member.untilReadyAgain() }
        try await device.write()
        let fresh = try await device.drained()
        for member in members.reversed() { await member.stop() }
        try await cluster.expectRows(fresh)
    }
}
