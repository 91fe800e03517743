import Foundation
import Seeded
import Testing

/// The file of a fan-out is lost or damaged while its process is away: the streams are made anew, and no row is wrong.
@Suite(
    .timeLimit(.minutes(5)),
    .enabled(if: WeirCluster.skipReason == nil, "\(WeirCluster.skipReason ?? "")"))
struct DamagedStreamTests {
    private enum Damage: CaseIterable {
        case deleted, truncated, flipped
    }

    @Test func aFileThatIsDeletedTruncatedOrFlippedIsMadeAnew() async throws {
        let cluster = try await WeirCluster.make(.init(partitions: 2))
        let members = try await cluster.startOneOfEach()
        let keeper = try #require(members.first { $0.role.keepsStreams })
        var device = PatientDevice(port: members[0].port)
        var random = SeededRandom(seed: 1)
        for damage in Damage.allCases {
            for _ in 0..<3 { try await device.write() }
            let before = try await device.drained()
            await keeper.kill()
            try Self.make(damage, to: keeper.data, &random)
            try keeper.startAgain()
            try await keeper.untilReady()
            try await keeper.untilReadyAgain()
            #expect(try await device.drained().rows == before.rows, "\(damage)")
        }
        for member in members.reversed() { await member.stop() }
    }

    private static func make(_ damage: Damage, to folder: String, _ random: inout SeededRandom) throws {
        let names = try FileManager.default.contentsOfDirectory(atPath: folder).filter { $0.hasPrefix("fanout-") }
        #expect(!names.isEmpty)
        for name in names {
            let path = folder + "/" + name
            switch damage {
            case .deleted: try FileManager.default.removeItem(atPath: path)
            // What is written ahead of the database would mend it.
            case _ where !name.hasSuffix(".db"): try FileManager.default.removeItem(atPath: path)
            case .truncated:
                let size = try Data(contentsOf: URL(fileURLWithPath: path)).count
                let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
                try handle.truncate(atOffset: UInt64(Int.random(in: 1..<max(size, 2), using: &random)))
                try handle.close()
            case .flipped:
                var bytes = try Data(contentsOf: URL(fileURLWithPath: path))
                for _ in 0..<200 where !bytes.isEmpty {
                    bytes[Int.random(in: 0..<bytes.count, using: &random)] ^= 1 << Int.random(in: 0..<8, using: &random)
                }
                try bytes.write(to: URL(fileURLWithPath: path))
            }
        }
    }
}
