import Foundation
import Simulation
import Testing

struct SeedTests {
    @Test func everyInvariantHoldsWithEverySeed() async throws {
        let isLong = ProcessInfo.processInfo.environment["WEIR_TEST_LONG"] != nil
        let round = SeedRound(1..<(isLong ? 10_001 : 41), threads: ProcessInfo.processInfo.activeProcessorCount)
        let result = try await round.play()
        #expect(result.failed == nil, "\(result.failed?.failure?.description ?? "")")
    }

    @Test func aSeedPlaysTheSameRunEachTime() throws {
        for seed in 1...10 as ClosedRange<UInt64> {
            let (first, second) = (try Simulation.run(seed: seed), try Simulation.run(seed: seed))
            #expect(first.hash == second.hash)
            #expect(first.jobs == second.jobs)
        }
    }

    @Test func seedsPlayDifferentRuns() throws {
        let hashes = try (1...10 as ClosedRange<UInt64>).map { try Simulation.run(seed: $0).hash }
        #expect(Set(hashes).count == hashes.count)
    }
}
