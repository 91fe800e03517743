import Foundation
import Testing

/// `weir replay` with `storage: cluster`: the tables in Postgres are lost, and rebuilt from the topics in Kafka.
@Suite(
    .timeLimit(.minutes(5)),
    .enabled(if: WeirCluster.skipReason == nil, "\(WeirCluster.skipReason ?? "")"))
struct ClusterReplayTests {
    @Test func lostTablesAreRebuiltAndWorkersContinue() async throws {
        let cluster = try await WeirCluster.make(.init(partitions: 2))
        let weir = try await cluster.start(.run, named: "all")
        var device = try await ConflictingWrites.play(port: weir.port, seed: 7, rounds: 12)[0]
        let before = try await ConflictingWrites.fresh(port: weir.port)
        await weir.stop()
        let tables = try await cluster.verify().lines(of: "tables", " equal: ")
        #expect(tables.count == 2)
        let results = try await LogAudit.check(cluster).rows

        try await cluster.database.execute("DROP SCHEMA weir CASCADE")
        let replay = try await cluster.replay()
        #expect(replay.code == 0, "\(replay.output)\(replay.errors)")
        let verified = try await cluster.verify()
        #expect(verified.code == 0, "\(verified.output)\(verified.errors)")
        #expect(verified.lines(of: "tables", " equal: ") == tables, "other hashes than before")

        try weir.startAgain()
        try await weir.untilReady()
        device.move(to: weir.port)
        let answer = try await device.sync([TestDevice.change("after", ["name": "x"])])
        #expect(TestDevice.verdicts(answer) == ["applied"])
        let after = try await ConflictingWrites.fresh(port: weir.port)
        #expect(after.rows.count == before.rows.count + 1)
        #expect(after.rows.filter { before.rows[$0.key] != nil } == before.rows)
        await weir.stop()
        // Lost streams are rebuilt from the tables.
        try FileManager.default.removeItem(atPath: weir.data)
        try weir.startAgain()
        try await weir.untilReady()
        let rebuilt = try await ConflictingWrites.fresh(port: weir.port)
        #expect(rebuilt.rows == after.rows)
        await weir.stop()
        // Only the new result was published.
        let audit = try await LogAudit.check(cluster)
        #expect(audit.repeats == 0)
        #expect(audit.rows == results + 1)
        let whole = try await cluster.verify()
        #expect(whole.code == 0, "\(whole.output)\(whole.errors)")
    }

    @Test func tablesThatHoldSomethingAreRefused() async throws {
        let cluster = try await WeirCluster.make(.init(partitions: 2))
        let weir = try await cluster.start(.run, named: "all")
        _ = try await ConflictingWrites.play(port: weir.port, seed: 8, rounds: 3)
        await weir.stop()
        let tables = try await cluster.verify().lines(of: "tables", " equal: ")
        let refused = try await cluster.replay()
        #expect(refused.code == 1)
        #expect(refused.errors.contains("holds something"), "\(refused.errors)")
        // Tables with rows but no position are not empty either.
        try await cluster.database.execute("DELETE FROM weir.weir_partitions")
        #expect(try await cluster.replay().errors.contains("\"weir_owners\" holds something"))
        try await cluster.database.execute("DROP SCHEMA weir CASCADE")
        try await cluster.command("migrate")
        let replayed = try await cluster.replay()
        #expect(replayed.code == 0, "\(replayed.output)\(replayed.errors)")
        // Nothing is left to do.
        let again = try await cluster.replay("--resume")
        #expect(again.code == 0, "\(again.output)\(again.errors)")
        #expect(try await cluster.verify().lines(of: "tables", " equal: ") == tables)
        #expect(try await cluster.replay("--replace").code == 64)
        #expect(try await cluster.replay("--into", "x").code == 64)
        #expect(try await cluster.replay("--storage", "embedded", "--resume").code == 64)
    }
}

extension WeirCluster {
    func replay(_ more: String...) async throws -> CommandRun {
        try await CommandRun.run(["replay", "--config", "weir.yaml"] + more, in: folder)
    }
}
