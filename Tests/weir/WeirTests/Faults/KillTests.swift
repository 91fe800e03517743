import Foundation
import Seeded
import Testing

/// The process is killed under load, again and again, at moments counted in requests and answers.
@Suite(.timeLimit(.minutes(10))) struct KillTests {
    /// How often each seed's server is killed.
    private static let kills = 5

    @Test(arguments: Seeds.count(4, long: 20))
    func aKilledServerLosesNothingAcknowledgedAndAppliesNothingTwice(seed: UInt64) async throws {
        let folder = try TestFolder()
        var random = SeededRandom(seed: seed)
        var fleet: Fleet?
        for _ in 0..<Self.kills {
            let weir = try await TestServer.start(in: folder)
            var playing = fleet ?? Fleet(weir, seed: seed)
            let end = EndOfServer(of: weir, at: Int.random(in: 1...40, using: &random))
            try await playing.play(on: weir, until: end)
            fleet = playing
        }
        let weir = try await TestServer.start(in: folder)
        try await fleet?.settle(on: weir)
        #expect(await weir.stop() == 0)
        try await Verification.expectEqual(folder)
    }
}
