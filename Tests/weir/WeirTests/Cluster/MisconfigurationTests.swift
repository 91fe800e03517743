import AsyncPrimitives
import ChangeLog
import Foundation
import PostgresServer
import Testing

/// Mistakes of an operator are reported, and their correction takes effect without a restart.
@Suite(
    .timeLimit(.minutes(5)),
    .enabled(if: WeirCluster.skipReason == nil, "\(WeirCluster.skipReason ?? "")"))
struct MisconfigurationTests {
    @Test func missingTopicsAreReportedAndUsedOnceTheyExist() async throws {
        let cluster = try await WeirCluster.prepare(.init(partitions: 2))
        let workers = try [ClusterMember.Role.ordering, .ingest].map { try cluster.launch($0, named: "\($0)") }
        for worker in workers {
            await worker.expectLogged("does not exist")
            try await worker.untilUnready(cluster.prefix)
        }
        try await cluster.createTopics()
        for worker in workers {
            await worker.expectLogged("the log holds no history")
            try await worker.untilUnready("no history")
        }
        try await cluster.command("migrate")
        for worker in workers {
            try await worker.untilReady()
            try await worker.untilReadyAgain()
            await worker.stop()
        }
    }

    @Test func topicsWithDifferentPartitionCountsAreRefusedUntilTheyMatch() async throws {
        let cluster = try await WeirCluster.prepare(.init(partitions: 2))
        try await cluster.createTopics()
        try await cluster.recreate("changes", partitions: 3)
        let check = try await CommandRun.run("topics", "check", "--config", "weir.yaml", in: cluster.folder)
        #expect(check.code == 1)
        #expect(check.output.contains("changes"), "\(check.output)")
        let worker = try cluster.launch(.ordering, named: "ordering")
        await worker.expectLogged("the topics have wrong numbers of partitions")
        try await worker.untilUnready("changes 3")
        try await cluster.recreate("changes", partitions: 2)
        try await cluster.command("migrate")
        try await worker.untilReady()
        try await worker.untilReadyAgain()
        await worker.stop()
    }

    /// Recreated topics, or those of another cluster: the tables have a different epoch.
    @Test func tablesWithADifferentEpochAreNotWritten() async throws {
        let first = try await WeirCluster.make(.init(partitions: 2))
        let second = try await WeirCluster.prepare(.init(partitions: 2, database: first.database))
        try await second.createTopics()
        let migration = try await CommandRun.run("migrate", "--config", "weir.yaml", in: second.folder)
        #expect(migration.code == 1)
        #expect(migration.errors.contains("the tables have epoch "), "\(migration.errors)")
        // The second history begins with its own tables; a worker is then pointed at those of the first.
        let own = try await TestDatabase.make(on: first.database.server)
        try await second.command("migrate", "--postgres.shards", own.connectionString)
        let worker = try second.launch(.ordering, named: "ordering")
        await worker.expectLogged("the tables have epoch ")
        try await worker.untilUnready("the tables have epoch ")
        await worker.stop()
        // The history of the tables continues.
        let rightful = try await first.start(.ordering, named: "ordering")
        await rightful.stop()
    }

    /// A page or an outcome that fits into no message would never reach its device.
    @Test func aGatewayWhoseAnswersExceedTheMessagesOfTheLinkIsRefusedWithTheirSum() async throws {
        let cluster = try await WeirCluster.make(.init(partitions: 1))
        let large = ["--link.max-message-bytes", "256MiB"]
        let fanOut = try await cluster.start(.fanout, named: "fanout", large)
        let arguments = ["--link.fan-outs", "127.0.0.1:\(fanOut.port)", "--gateway.page-bytes", "60MiB"]
        let run = try await CommandRun.run(["gateway", "--config", "weir.yaml"] + arguments, in: cluster.folder)
        #expect(run.code == 1)
        #expect(
            run.errors.contains("gateway.page-bytes, 62914560, one more row as large as a record, "), "\(run.errors)")
        #expect(run.errors.contains("more than link.max-message-bytes, 67108864: lower one of them"), "\(run.errors)")
        let gateway = try await cluster.start(.gateway, named: "gateway", arguments + large)
        for member in [gateway, fanOut] { await member.stop() }
    }

    @Test func aWrongPasswordIsReportedAndTheRightOneUsedOnceItWorks() async throws {
        let rule = "local all worker scram-sha-256"
        let postgres = try await PostgresServer.start(
            setUp: "{ echo '\(rule)'; cat data/pg_hba.conf; } > rules && cat rules > data/pg_hba.conf")
        let result = await Result.capturing {
            let cluster = try await WeirCluster.make(.init(partitions: 2, postgres: postgres))
            try await cluster.database.execute("CREATE ROLE worker LOGIN SUPERUSER PASSWORD 'another'")
            let password = "hunter2-\(UUID().uuidString)"
            let path = try cluster.folder.write(password, to: "password")
            let worker = try cluster.launch(
                .ordering, named: "ordering",
                [
                    "--postgres.shards",
                    cluster.database.connectionString.replacing("user=weir", with: "user=worker"),
                    "--postgres.password-file", path,
                ])
            await worker.expectLogged("password authentication failed")
            try await worker.untilUnready("password authentication failed")
            try await cluster.database.execute("ALTER ROLE worker PASSWORD '\(password)'")
            try await worker.untilReady()
            try await worker.untilReadyAgain()
            await worker.stop()
            #expect(!worker.process.log.contains { $0.contains(password) })
        }
        await postgres.end()
        try result.get()
    }
}
