import FanOut
import FanOutLink
import Seeded
import SyncModel
import Testing

/// The rows of conflicts that are read with an outcome.
@Suite(.timeLimit(.minutes(5))) struct ShownRowsTests {
    private let second = Device(caller: "def", knowledgeID: "k3")

    /// Conflicts of rows of different sizes and devices, some named twice, some written since and some absent; with the rows
    /// to be shown for them.
    private func makeWorld(_ random: inout SeededRandom) throws -> (World, PartReference, [(index: Int, json: String)])
    {
        let world = World()
        for (device, name) in [(Device.first, "a"), (.second, "b")] {
            try world.upload(
                (0..<20).map {
                    .person(
                        "\(name)\($0)", name: String(repeating: "x", count: Int.random(in: 0..<2000, using: &random)),
                        index: $0)
                }, device: device, batch: 1)
        }
        let ids = (0..<60).map { _ in
            "\(["a", "b", "c"][Int.random(in: 0..<3, using: &random)])\(Int.random(in: 0..<20, using: &random))"
        }
        let conflict = try world.upload(
            ids.enumerated().map {
                .person(RowID(unchecked: $1), by: "k3", index: $0, base: TimeStamp(1), ifBase: true)
            },
            device: second, batch: 1)
        for batch in Int64(2)...4 {
            let written = (0..<5).map { _ in "a\(Int.random(in: 0..<20, using: &random))" }
            try world.upload(
                Set(written).sorted().enumerated().map {
                    .person(RowID(unchecked: $1), name: "written since \(batch)", index: $0)
                },
                batch: batch)
        }
        let rows = Dictionary(uniqueKeysWithValues: world.stream(of: "abc").map { ($0.key.id.text, world.json($0)) })
        var seen: Set<String> = []
        let shown = ids.enumerated().compactMap { index, id in
            seen.insert(id).inserted ? rows[id].map { (index: index, json: $0) } : nil
        }
        return (world, conflict, shown)
    }

    @Test(arguments: 1...8) func aWindowHasTheFirstRowsWithinItsSize(seed: UInt64) async throws {
        var random = SeededRandom(seed: seed)
        let (world, conflict, shown) = try makeWorld(&random)
        try await withFanOut(world) { service in
            try await service.caughtUp(with: world)
            for _ in 0..<30 {
                let from = Int.random(in: 0..<62, using: &random)
                let window = RowWindow(
                    from: from, to: random.once(in: 4) ? .max : from + Int.random(in: 0..<60, using: &random),
                    maximumBytes: .random(in: 0..<8000, using: &random))
                var expected: [Int: String] = [:]
                var bytes = 0
                for (index, json) in shown where index >= window.from && index < window.end {
                    bytes += json.utf8.count
                    guard index == from || bytes <= window.maximumBytes else { break }
                    expected[index] = json
                }
                let outcome = try await service.fanOut.outcome(of: conflict, rows: window, within: .seconds(60))
                #expect(outcome.rows.mapValues { String(decoding: $0, as: UTF8.self) } == expected)
                let kept = try await service.fanOut.keptOutcome(
                    of: 1, for: conflict.key, rows: window, within: .zero)
                #expect(kept?.rows == outcome.rows)
            }
            #expect(try await service.fanOut.outcome(of: conflict, rows: nil, within: .zero).rows.isEmpty)
        }
    }

    /// More rows than are found at a time, of which all but the last few were written since.
    @Test func aWindowOfManyRowsHasAllOfThem() async throws {
        let world = World()
        let changes = (0..<2500).map { Change.person("p\($0)", index: $0) }
        try world.upload(changes, batch: 1)
        let conflict = try world.upload(
            (0..<2500).map { .person("p\($0)", by: "k3", index: $0, base: TimeStamp(1), ifBase: true) },
            device: second, batch: 1)
        try world.upload((0..<2490).map { .person("p\($0)", name: "since", index: $0) }, batch: 2)
        try await withFanOut(world) { service in
            try await service.caughtUp(with: world)
            let outcome = try await service.fanOut.outcome(of: conflict, rows: .all, within: .seconds(60))
            let rows = Dictionary(
                uniqueKeysWithValues: world.stream(of: "abc").map { ($0.key.id.text, Array(world.json($0).utf8)) })
            #expect(outcome.rows.count == 2500)
            #expect(outcome.rows.allSatisfy { $1 == rows["p\($0)"] })
        }
    }
}
