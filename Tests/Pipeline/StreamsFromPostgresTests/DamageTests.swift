import FanOut
import FanOutLink
import Foundation
import PostgresServer
import Seeded
import SyncModel
import Testing

/// Files that are deleted, truncated or changed are rebuilt from Postgres, and no wrong row is sent.
@Suite(
    .enabled(if: PostgresServer.programs != nil, Comment(rawValue: PostgresServer.skipReason)),
    .timeLimit(.minutes(5)))
struct DamageTests {
    /// The damage to a file.
    private enum Damage: CaseIterable {
        case deleted
        case truncated
        case flipped

        func act(on path: String, _ generator: inout SeededRandom) throws {
            let url = URL(fileURLWithPath: path)
            switch self {
            case .deleted: try FileManager.default.removeItem(at: url)
            case .truncated:
                let bytes = try Data(contentsOf: url)
                try bytes.prefix(Int.random(in: 0..<bytes.count, using: &generator)).write(to: url)
            case .flipped:
                let file = try FileHandle(forUpdating: url)
                let size = try file.seekToEnd()
                for _ in 0..<8 { try Self.flip(UInt64.random(in: 0..<size, using: &generator), in: file, &generator) }
                try file.close()
            }
        }

        private static func flip(_ offset: UInt64, in file: FileHandle, _ generator: inout SeededRandom) throws {
            try file.seek(toOffset: offset)
            let byte = try file.read(upToCount: 1)?.first ?? 0
            try file.seek(toOffset: offset)
            try file.write(contentsOf: [byte ^ UInt8.random(in: 1...255, using: &generator)])
        }
    }

    @Test(arguments: [UInt64(1), 2]) func noticesWhatHappenedToAFileWhileItWasClosed(seed: UInt64) async throws {
        try await Pipeline.with(seed: seed) { pipeline, folder in
            var generator = SeededRandom(seed: seed)
            let made = folder + "/made"
            var noticed = 0
            for round in 0..<6 {
                try await pipeline.order(round == 0 ? 120 : 8)
                try await pipeline.removeResults()
                let place = round % pipeline.partitions.count
                try await pipeline.withStream(in: made) { stream, events in
                    try await pipeline.caughtUp(events)
                    try await pipeline.expectSame(stream, seed: seed)
                    if round > 0 { noticed += events.all.values.contains { $0.event.isDamage } ? 1 : 0 }
                }
                let damage = Damage.allCases[round % Damage.allCases.count]
                try damage.act(on: "\(made)/fanout-\(place).db", &generator)
            }
            try await pipeline.withStream(in: made) { stream, events in
                try await pipeline.caughtUp(events)
                try await pipeline.expectSame(stream, seed: seed)
            }
            // Flipped bytes may be in unused space.
            #expect(noticed >= 3)
        }
    }

    @Test(arguments: [UInt64(1), 2]) func sendsNoWrongRowWhenAFileIsChangedWhileItIsServed(seed: UInt64) async throws {
        try await Pipeline.with(seed: seed) { pipeline, folder in
            var generator = SeededRandom(seed: seed)
            try await pipeline.order(150)
            try await pipeline.removeResults()
            try await pipeline.withStream(in: folder + "/made") { try await pipeline.caughtUp($1) }
            var failures = 0
            for _ in 0..<4 {
                // Reopened with only the heads checked, so that most pages are read from the file later.
                try await pipeline.withStream(in: folder + "/made", check: .heads) { stream, events in
                    let file = "\(folder)/made/fanout-0.db"
                    for _ in 0..<6 { try Damage.flipped.act(on: file, &generator) }
                    for owner in Uploads.owners where Uploads.partition(of: owner) == 0 {
                        let request = PagePull(
                            owners: [OwnerPull(owner: owner, knowledge: OwnerKnowledge())], limit: 10_000,
                            maximumBytes: 1 << 30)
                        let expected = try await pipeline.reference.pull(request, within: .seconds(60))
                        do {
                            let isSame = try await stream.pull(request, within: .seconds(60)) == expected
                            #expect(isSame)
                        } catch FanOutError.notReady {
                            failures += 1
                            // Rebuilt in the meantime, it serves again.
                            await events.ready(2, of: 0)
                            let isSame = try await stream.pull(request, within: .seconds(60)) == expected
                            #expect(isSame)
                        }
                    }
                }
            }
            #expect(failures > 0)
        }
    }
}
