import Foundation
import Fuzzing
import Seeded
import Testing

/// The machine loses power under load, and with it all writes that were not synced: a sync must precede every acknowledgement.
@Suite(.timeLimit(.minutes(10))) struct PowerCutTests {
    /// How often each seed's server loses power.
    private static let cuts = 5

    @Test(arguments: TestLength.seeds(4, short: 1, long: 20))
    func everyAcknowledgedBatchSurvivesALossOfPower(seed: UInt64) async throws {
        let folder = try TestFolder()
        let disk = try FaultyDisk(under: folder)
        let gateways = Gateways()
        var fleet = Fleet(gateways, owners: 2, seed: seed)
        let weir = try await fleet.play { _ in
            var random = SeededRandom(seed: seed)
            for _ in 0..<Self.cuts {
                Self.planCut(of: disk, &random)
                let weir: WeirProcess
                do {
                    weir = try await TestServer.start(in: folder, environment: disk.environment)
                } catch is StartFailure where disk.hasEnded {
                    continue
                }
                gateways.add(weir.port)
                #expect(await weir.untilEnd() == SIGKILL)
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

    /// Chooses when the next process ends, and which of its writes that were not synced survive.
    private static func planCut(of disk: FaultyDisk, _ random: inout SeededRandom) {
        let choices: [FaultyDisk.Survivors] = [.none, .none, .some(random.next()), .all]
        let survivors = choices.randomElement(using: &random) ?? .none
        if Bool.random(using: &random) {
            disk.end(afterSends: UInt64.random(in: 1...40, using: &random), leaving: survivors)
        } else {
            // Some ends come before the server is ready.
            disk.end(afterEvents: UInt64.random(in: 1...600, using: &random), leaving: survivors)
        }
    }
}
