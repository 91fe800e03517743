import Foundation
import Seeded
import Testing

/// The machine loses power under load, and with it what was written and not synced: every acknowledgement stands on a
/// sync that came before it.
@Suite(.timeLimit(.minutes(10))) struct PowerCutTests {
    /// How often each seed's server loses power.
    private static let cuts = 5

    @Test(arguments: Seeds.count(4, long: 20))
    func whatWasAcknowledgedOutlivesALossOfPower(seed: UInt64) async throws {
        let folder = try TestFolder()
        let disk = try FaultyDisk(under: folder)
        var random = SeededRandom(seed: seed)
        var fleet: Fleet?
        for _ in 0..<Self.cuts {
            let survivors: [FaultyDisk.Survivors] = [.none, .none, .some(random.next()), .all]
            let left = survivors.randomElement(using: &random) ?? .none
            if Bool.random(using: &random) {
                disk.end(afterSends: UInt64.random(in: 1...40, using: &random), leaving: left)
            } else {
                // Some come before the server is ready.
                disk.end(afterEvents: UInt64.random(in: 1...600, using: &random), leaving: left)
            }
            let weir: WeirProcess
            do {
                weir = try await TestServer.start(in: folder, environment: disk.environment)
            } catch is StartFailure where disk.hasEnded {
                continue
            }
            var playing = fleet ?? Fleet(weir, seed: seed)
            try await playing.play(on: weir, until: EndOfServer(of: weir, at: .max))
            fleet = playing
            #expect(await weir.untilEnd() == SIGKILL)
        }
        let weir = try await TestServer.start(in: folder)
        if fleet == nil { fleet = Fleet(weir, seed: seed) }
        try await fleet?.settle(on: weir)
        #expect(await weir.stop() == 0)
        try await Verification.expectEqual(folder)
    }
}
