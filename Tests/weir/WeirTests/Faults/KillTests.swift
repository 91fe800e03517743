import Foundation
import Fuzzing
import Seeded
import Testing

/// The process is killed under load, repeatedly, at moments counted in requests and answers.
@Suite(.timeLimit(.minutes(10))) struct KillTests {
    /// How often each seed's server is killed.
    private static let kills = 5

    @Test(arguments: TestLength.seeds(4, short: 1, long: 20))
    func aKilledServerLosesNothingAcknowledgedAndAppliesNothingTwice(seed: UInt64) async throws {
        let folder = try TestFolder()
        let gateways = Gateways()
        var fleet = Fleet(gateways, owners: 2, seed: seed)
        let weir = try await fleet.play { progress in
            var random = SeededRandom(seed: seed)
            for _ in 0..<Self.kills {
                let weir = try await TestServer.start(in: folder)
                gateways.add(weir.port)
                try await progress.wait(for: Int.random(in: 1...60, using: &random))
                #expect(await weir.kill() == SIGKILL)
                gateways.remove(weir.port)
            }
            let weir = try await TestServer.start(in: folder)
            gateways.add(weir.port)
            return weir
        }
        try await fleet.settle()
        #expect(await weir.stop() == 0)
        try await Verification.expectEqual(folder)
    }
}
