import AsyncPrimitives
import ChangeLog
import Foundation
import Fuzzing
import KafkaServer
import PostgresServer
import Seeded
import Testing

/// Processes, brokers and the database are ended under load, repeatedly, at moments counted in requests and answers.
@Suite(
    .timeLimit(.minutes(20)),
    .enabled(if: WeirCluster.skipReasonForOwnBrokers == nil, "\(WeirCluster.skipReasonForOwnBrokers ?? "")"))
struct ClusterKillTests {
    private enum End {
        case clean
        case kill
    }

    @Test func nothingAcknowledgedIsLostOrDoubledWhicheverProcessIsKilled() async throws {
        try await play(rounds: TestLength.count(5, short: 1, long: 11), brokers: 1, seed: 1)
    }

    @Test(.enabled(if: TestLength.current != .short, "WEIR_TEST_LENGTH=full asks for it"))
    func nothingAcknowledgedIsLostOrDoubledWhenTheLeaderOfSeveralBrokersIsKilled() async throws {
        try await play(rounds: 1, brokers: 3, seed: 2)
    }

    private func play(rounds: Int, brokers: Int, seed: UInt64) async throws {
        let kafka = try await KafkaServer.start(brokers: brokers)
        let postgres = try await PostgresServer.start()
        let result = await Result.capturing {
            let cluster = try await WeirCluster.make(.init(kafka: kafka, postgres: postgres))
            let members = try await cluster.startTwoOfEach()
            var fleet = Fleet(cluster.gateways, owners: 8, seed: seed)
            try await fleet.play { progress in
                var random = SeededRandom(seed: seed)
                for round in 0..<rounds {
                    let ends: [End] = round % 2 == 0 ? [.kill, .clean] : [.clean, .kill]
                    try await Self.playRound(members, kafka, postgres, ends, progress, &random)
                }
            }
            let device = try await fleet.settle()
            for member in members.reversed() { await member.stop() }
            try await cluster.expectRows(device)
            let audit = try await LogAudit.check(cluster)
            try await cluster.expectPositions(audit)
            #expect(audit.rows > 0)
            let verified = try await cluster.verify()
            #expect(verified.code == 0, "\(verified.output)\(verified.errors)")
            print("\(fleet.batchCount) batches, \(audit.rows) rows, \(audit.repeats) repeats")
        }
        await kafka.end()
        await postgres.end()
        try result.get()
    }

    /// Kills each process once, in an order chosen by the seed, and ends a broker and the database in between.
    private static func playRound(
        _ members: [ClusterMember], _ kafka: KafkaServer, _ postgres: PostgresServer, _ ends: [End],
        _ progress: Progress, _ random: inout SeededRandom
    ) async throws {
        let order = members.shuffled(using: &random)
        let moments = Array(0..<order.count).shuffled(using: &random)
        for (index, member) in order.enumerated() {
            try await progress.wait(for: Int.random(in: 1...50, using: &random))
            await member.kill()
            try member.startAgain()
            if index == moments[0] {
                let broker = Int.random(in: 1...kafka.brokers, using: &random)
                if case .kill = ends[0] { try await kafka.kill(broker) } else { try await kafka.stop(broker) }
                // The other brokers continue without the one, leader or not.
                if kafka.brokers > 1 { try await progress.wait(for: Int.random(in: 40...120, using: &random)) }
                try await kafka.startAgain(broker)
            }
            if index == moments[1] {
                if case .kill = ends[1] { try await postgres.kill() } else { try await postgres.stop() }
                try await postgres.startAgain()
            }
            try await member.untilReady()
        }
    }
}
