import Foundation
import Fuzzing
import ProgramRun
import Testing

@testable import Simulation

struct SeedTests {
    /// Runs are short: most violations occur early, and more seeds find more than longer runs.
    @Test func everyInvariantHoldsWithEverySeed() async throws {
        let round = SeedRound(
            seeds: 1..<(TestLength.count(2000, short: 100, long: 5000) + 1),
            steps: TestLength.current == .long ? Simulation.defaultSteps : 30,
            threads: ProcessInfo.processInfo.activeProcessorCount)
        let result = try await round.play()
        #expect(result.failed == nil, "\(result.failed?.failure?.description ?? "")")
    }

    @Test func aSeedPlaysTheSameRunEachTime() throws {
        for seed in 1...8 as ClosedRange<UInt64> {
            let (first, second) = (try Simulation.run(seed: seed, steps: 30), try Simulation.run(seed: seed, steps: 30))
            #expect(first.hash == second.hash)
            #expect(first.jobs == second.jobs)
        }
    }

    @Test func runsOnSeveralThreadsAreThoseOfOneThread() async throws {
        let alone = try Simulation.run(seed: 9, steps: 20).hash
        let round = try await SeedRound(seeds: 1..<10, steps: 20, threads: 3).play()
        #expect(round.last?.seed == 9)
        #expect(round.last?.hash == alone)
        #expect(round.count == 9)
    }

    @Test func seedsPlayDifferentRuns() throws {
        let hashes = try (1...5 as ClosedRange<UInt64>).map { try Simulation.run(seed: $0, steps: 5).hash }
        #expect(Set(hashes).count == hashes.count)
    }

    @Test func aRunKeepsItsTraceWhereAsked() throws {
        #expect(try Simulation.run(seed: 1, steps: 5).trace.isEmpty)
        let trace = try Simulation.run(seed: 1, steps: 5, keepsTrace: true).trace
        #expect(trace.contains { $0.contains("gateway 1.1 starts") })
        #expect(trace.contains { $0.contains("no more faults") })
    }

    @Test func theProgramPlaysTheSameRunInEachProcess() async throws {
        let folder = try TestFolder()
        let arguments = ["--seed", "3", "--steps", "20"]
        let first = try await CommandRun.run(arguments, of: .simulate, in: folder)
        let second = try await CommandRun.run(arguments, of: .simulate, in: folder)
        #expect(first.code == 0, "\(first.output)")
        #expect(first.output.contains("seed 3 has the hash "))
        #expect(first.output == second.output)
        let wrong = try await CommandRun.run("--seeds", "none", of: .simulate, in: folder)
        #expect(wrong.code == 64)
        #expect(wrong.errors.contains("--seeds is a number from 1"))
    }
}
