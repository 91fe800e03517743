import Foundation
import Seeded
import Testing

/// The file of a fan-out is lost or damaged, while its process is stopped or running: the streams are rebuilt, and no row is
/// wrong.
@Suite(
    .timeLimit(.minutes(5)),
    .enabled(if: WeirCluster.skipReason == nil, "\(WeirCluster.skipReason ?? "")"))
struct DamagedStreamTests {
    private enum Damage: CaseIterable {
        case deleted, truncated, flipped
        /// Values of rows are overwritten, and nothing else.
        case rewritten
    }

    @Test func aFileThatIsDeletedTruncatedOrFlippedIsRebuilt() async throws {
        let cluster = try await WeirCluster.make(.init(partitions: 2))
        let members = try await cluster.startOneOfEach()
        let keeper = try #require(members.first { $0.role.keepsStreams })
        var device = CountingDevice(port: members[0].port)
        var random = SeededRandom(seed: 1)
        for damage in Damage.allCases {
            for _ in 0..<3 { try await device.write() }
            let before = try await device.drained()
            // A clean stop moves all rows into the database file.
            if damage == .deleted { await keeper.kill() } else { await keeper.stop() }
            try Self.inflict(damage, on: keeper.data, &random)
            try keeper.startAgain()
            try await keeper.untilReady()
            try await keeper.untilReadyAgain()
            #expect(try await device.drained().rows == before.rows, "\(damage)")
        }
        for member in members.reversed() { await member.stop() }
    }

    /// The process has the file open, and reads rows that are no longer written: from the WAL, or after a clean restart from the
    /// database file.
    @Test func aFileThatIsDamagedUnderItsProcessIsNoticedAndRebuilt() async throws {
        let cluster = try await WeirCluster.make(.init(partitions: 1))
        let members = try await cluster.startOneOfEach()
        let keeper = try #require(members.first { $0.role.keepsStreams })
        var device = CountingDevice(port: members[0].port)
        var writer = TestDevice(port: members[0].port, syncID: "stock", knowledgeID: "k9")
        for batch in 0..<6 {
            let text = JSON(String(repeating: "\(batch) of many ", count: 60))
            _ = try await writer.sync((0..<10).map { TestDevice.change("\(batch)-\($0)", ["name": text]) })
        }
        let before = try await Self.drained(members[0].port)
        #expect(before.rows.count == 60)
        var random = SeededRandom(seed: 2)
        for (damage, isRestarted) in [
            (Damage.deleted, false), (.flipped, false), (.flipped, true), (.truncated, true),
        ] {
            if isRestarted {
                await keeper.stop()
                try keeper.startAgain()
                try await keeper.untilReady()
                try await keeper.untilReadyAgain()
            }
            #expect(try await Self.drained(members[0].port).rows == before.rows)
            let seen = keeper.process.log.count
            try Self.damage(damage, openIn: keeper.data, &random)
            // A new result makes readers drop the pages that they have cached.
            try await device.write()
            #expect(try await Self.drained(members[0].port).rows == before.rows, "\(damage)")
            #expect(await keeper.process.hasLogged("Stream must be rebuilt", after: seen), "\(damage)")
            #expect(await keeper.process.hasLogged("Stream was rebuilt", after: seen), "\(damage)")
            _ = try await device.drained()
            try await keeper.untilReadyAgain()
        }
        for member in members.reversed() { await member.stop() }
    }

    /// A new device that holds everything of the owner whose rows are no longer written.
    private static func drained(_ port: UInt16) async throws -> TestDevice {
        var fresh = TestDevice(port: port, syncID: "stock", knowledgeID: "new")
        try await Retry.untilAnswered { try await fresh.drain() }
        return fresh
    }

    /// Damages files in place, so that the process that has them open reads the damage.
    ///
    /// The -shm file is shared memory and is left out.
    private static func damage(_ damage: Damage, openIn folder: String, _ random: inout SeededRandom) throws {
        let names = try FileManager.default.contentsOfDirectory(atPath: folder).filter { $0.hasPrefix("fanout-") }
        #expect(names.sorted() == ["fanout-0.db", "fanout-0.db-shm", "fanout-0.db-wal"])
        for name in names {
            let path = folder + "/" + name
            if damage == .deleted {
                try FileManager.default.removeItem(atPath: path)
                continue
            }
            if name.hasSuffix("-shm") { continue }
            let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
            let size = try file.seekToEnd()
            switch damage {
            case .truncated: try file.truncate(atOffset: size / 8)
            default:
                // In every sector, as devices fail.
                for sector in stride(from: 0, to: size, by: 512) {
                    let count = min(64, size - sector)
                    let slack = min(512, size - sector) - count
                    try file.seek(toOffset: sector + UInt64.random(in: 0...slack, using: &random))
                    try file.write(contentsOf: (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) })
                }
            }
            try file.close()
        }
    }

    private static func inflict(_ damage: Damage, on folder: String, _ random: inout SeededRandom) throws {
        let names = try FileManager.default.contentsOfDirectory(atPath: folder).filter { $0.hasPrefix("fanout-") }
        #expect(!names.isEmpty)
        var rewritten = 0
        for name in names {
            let path = folder + "/" + name
            switch damage {
            case .deleted: try FileManager.default.removeItem(atPath: path)
            case .rewritten:
                var bytes = try Data(contentsOf: URL(fileURLWithPath: path))
                var end = bytes.startIndex
                while let found = bytes[end...].firstRange(of: Data(#""email":"k1""#.utf8)) {
                    bytes[found.upperBound - 2] = UInt8(ascii: "7")
                    end = found.upperBound
                }
                rewritten += end == bytes.startIndex ? 0 : 1
                try bytes.write(to: URL(fileURLWithPath: path))
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
        #expect((rewritten > 0) == (damage == .rewritten))
    }
}
