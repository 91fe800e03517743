import Foundation
import Testing

/// `weir verify` with `storage: cluster`: the tables in Postgres against the topics in Kafka.
@Suite(
    .timeLimit(.minutes(5)),
    .enabled(if: WeirCluster.skipReason == nil, "\(WeirCluster.skipReason ?? "")"))
struct ClusterVerifyTests {
    @Test func tablesThatAreWrittenDuringTheCheckAreEqual() async throws {
        let cluster = try await WeirCluster.make(.init(partitions: 2))
        let weir = try await cluster.start(.run, named: "all")
        var device = try await ConflictingWrites.play(port: weir.port, seed: 1, rounds: 12)[0]
        async let verified = cluster.verify()
        for round in 0..<20 {
            _ = try await device.sync([TestDevice.change("busy\(round % 3)", ["name": JSON("n\(round)")])])
        }
        let run = try await verified
        #expect(run.code == 0, "\(run.output)\(run.errors)")
        #expect(run.output.contains("\nEqual: "))
        for subject in ["position", "tables", "ordered"] { #expect(run.lines(of: subject, " equal: ").count == 2) }
        // Only the lock remains.
        let left = try FileManager.default.contentsOfDirectory(atPath: cluster.folder.path + "/weir-verify")
        #expect(left == ["lock"])
        await weir.kill()
        let dead = try await cluster.verify()
        #expect(dead.code == 0, "\(dead.output)\(dead.errors)")
    }

    @Test func rowsThatWereChangedInPostgresAreReported() async throws {
        let cluster = try await WeirCluster.make(.init(partitions: 2))
        let weir = try await cluster.start(.run, named: "all")
        _ = try await ConflictingWrites.play(port: weir.port, seed: 2, rounds: 12)
        let found = try await cluster.database.query(
            """
            SELECT sync_id, id, name, partition::text FROM person JOIN weir_owners USING (sync_id)
            WHERE name IS NOT NULL ORDER BY 1, 2 LIMIT 1
            """)
        let row = try #require(found.first).map { $0 ?? "" }
        let key = "table person, owner \(row[0]), id \(row[1])"
        try await cluster.database.execute(
            "UPDATE weir.person SET name = 'flipped' WHERE (sync_id, id) = ('\(row[0])', '\(row[1])')")
        let flipped = try await cluster.verify()
        #expect(flipped.code == 1, "\(flipped.errors)")
        #expect(flipped.lines(of: "tables", " equal: ").count == 1)
        #expect(
            flipped.lines(of: "tables", " DIFFERENT: ") == [
                "  tables    DIFFERENT: \(key), column name: expected \"\(row[2])\", found \"flipped\""
            ])
        #expect(flipped.output.contains("partition \(row[3])\n  position  equal: "))
        // One partition by itself.
        let other = try await cluster.verify("--partitions", row[3] == "0" ? "1" : "0")
        #expect(other.code == 0, "\(other.output)")
        #expect(!other.output.contains("partition \(row[3])"))
        #expect(try await cluster.verify("--partitions", row[3]).code == 1)

        try await cluster.database.execute(
            "DELETE FROM weir.person WHERE (sync_id, id) = ('\(row[0])', '\(row[1])')")
        let gone = try await cluster.verify("--partitions", row[3])
        #expect(gone.code == 1)
        #expect(gone.lines(of: "tables", " DIFFERENT: \(key): expected version ").count == 1, "\(gone.output)")
        #expect(gone.lines(of: "tables", ", found no such row").count == 1, "\(gone.output)")

        try await cluster.database.execute(
            """
            UPDATE weir.weir_devices SET highest_batch = highest_batch + 7;
            UPDATE weir.weir_partitions SET time_stamp = time_stamp + 1 WHERE partition = \(row[3])
            """)
        let progress = try await cluster.verify()
        #expect(progress.code == 1)
        #expect(
            progress.lines(of: "position", " DIFFERENT: the partition's newest timeStamp: expected ").count == 1,
            "\(progress.output)")
        #expect(progress.lines(of: "tables", " DIFFERENT: ").count == 2, "\(progress.output)")
        await weir.stop()
    }

    @Test func aRoleThatMayOnlyReadTheTablesCanVerify() async throws {
        let cluster = try await WeirCluster.make(.init(partitions: 2))
        let weir = try await cluster.start(.run, named: "all")
        _ = try await ConflictingWrites.play(port: weir.port, seed: 3, rounds: 3)
        let role = "auditor_" + cluster.database.name
        try await cluster.database.execute("CREATE ROLE \(role) LOGIN")
        let login = [
            "--postgres.shards", cluster.database.connectionString.replacing("user=weir", with: "user=\(role)"),
        ]
        let refused = try await cluster.verify(login)
        #expect(refused.code == 2)
        try await cluster.database.execute(
            "GRANT USAGE ON SCHEMA weir TO \(role); GRANT SELECT ON ALL TABLES IN SCHEMA weir TO \(role)")
        let run = try await cluster.verify(login)
        #expect(run.code == 0, "\(run.output)\(run.errors)")
        #expect(run.lines(of: "tables", " equal: ").count == 2)
        await weir.stop()
    }

    @Test func aCheckThatCannotRunExitsWithTwo() async throws {
        let cluster = try await WeirCluster.prepare(.init(partitions: 2))
        try await cluster.createTopics()
        let none = try await cluster.verify()
        #expect(none.code == 2)
        #expect(none.errors.contains("the log holds no history"), "\(none.errors)")
        try await cluster.command("migrate")
        try await cluster.database.execute("DROP SCHEMA weir CASCADE")
        let missing = try await cluster.verify()
        #expect(missing.code == 2)
        #expect(missing.errors.contains("run `weir migrate`"), "\(missing.errors)")
        #expect(try await cluster.database.query("SELECT 1 FROM pg_namespace WHERE nspname = 'weir'").isEmpty)
        try await cluster.command("migrate")
        // Tables and log are empty.
        let empty = try await cluster.verify()
        #expect(empty.code == 0, "\(empty.output)\(empty.errors)")
        let beyond = try await cluster.verify("--partitions", "1-3")
        #expect(beyond.code == 2)
        #expect(beyond.errors.contains("--partitions names 2-3"), "\(beyond.errors)")
        #expect(try await cluster.verify("--partitions", "two").code == 64)
        #expect(try await cluster.verify("--copy").code == 64)
        let folder = try await cluster.verify("--storage", "embedded")
        #expect(folder.code == 2)
        #expect(folder.errors.contains("there is no log in"), "\(folder.errors)")
    }
}

extension WeirCluster {
    /// Runs `weir verify` with a scratch folder of the test's own.
    func verify(_ more: String...) async throws -> CommandRun { try await verify(more) }

    /// Runs `weir verify` with a scratch folder of the test's own.
    func verify(_ more: [String]) async throws -> CommandRun {
        try await CommandRun.run(["verify", "--config", "weir.yaml", "--scratch", folder.path] + more, in: folder)
    }
}

extension CommandRun {
    /// The lines of a report on a subject that contain some words.
    func lines(of subject: String, _ words: String) -> [String] {
        output.split(separator: "\n").map(String.init).filter { $0.hasPrefix("  \(subject) ") && $0.contains(words) }
    }
}
