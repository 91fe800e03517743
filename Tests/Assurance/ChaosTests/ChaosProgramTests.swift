import Foundation
import Fuzzing
import KafkaServer
import PostgresServer
import ProgramRun
import Testing

/// The program itself, on a real cluster.
@Suite(.timeLimit(.minutes(10)))
struct ChaosProgramTests {
    @Test(
        .enabled(if: TestLength.current != .short, "WEIR_TEST_LENGTH=full asks for it"),
        .enabled(if: KafkaServer.home != nil, "\(KafkaServer.skipReason)"),
        .enabled(if: PostgresServer.programs != nil, "\(PostgresServer.skipReason)"))
    func everyJudgmentHoldsUnderFaults() async throws {
        let folder = try TestFolder()
        let run = try await CommandRun.run(
            "--seconds", "\(TestLength.count(10, long: 60))", "--seed", "1", "--faults", "60", "--owners", "2",
            "--devices", "2",
            "--batch", "20", "--rows", "20", "--partitions", "4", "--folder", folder.path, of: .chaos, in: folder,
            environment: ["KAFKA_HOME": KafkaServer.home ?? ""])
        #expect(run.code == 0, "\(run.output)\(run.errors)")
        #expect(run.output.contains("every judgment held"))
        #expect(!run.output.contains(": 0 changes in"), "\(run.output)")
        // The scratch folder is removed where nothing is wrong.
        let left = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        #expect(!left.contains { $0.hasPrefix("weir-chaos") }, "\(left)")
    }

    @Test func wrongOptionsAreRefused() async throws {
        let folder = try TestFolder()
        let wrong = try await CommandRun.run(
            "--changes", "many", "--kafka", "a:1", "--postgres", "dbname=weir", of: .chaos, in: folder)
        #expect(wrong.code == 64)
        #expect(wrong.errors.contains("--changes is a number from 1"), "\(wrong.errors)")
        let ignored = try await CommandRun.run(
            "--in-turn", "--faults", "3", "--kafka", "a:1", "--postgres", "dbname=weir", of: .chaos, in: folder)
        #expect(ignored.code == 64)
        #expect(ignored.errors.contains("leave --faults out"), "\(ignored.errors)")
    }

    @Test func aProgramThatCannotStartKeepsItsFolder() async throws {
        let folder = try TestFolder()
        let failed = try await CommandRun.run(
            "--kafka", "127.0.0.1:1", "--postgres", "host=127.0.0.1 port=1 dbname=weir", "--folder", folder.path,
            "--weir",
            "/bin/false", of: .chaos, in: folder)
        #expect(failed.code == 1)
        #expect(failed.errors.contains("the scratch folder is kept"), "\(failed.errors)")
    }
}
