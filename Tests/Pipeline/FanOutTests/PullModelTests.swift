import FanOut
import FanOutLink
import Seeded
import SyncModel
import Testing

/// Compares pulls with a naive model: every row of the owner, filtered and sorted.
@Suite(.timeLimit(.minutes(5))) struct PullModelTests {
    /// The state of a device: rows by key, and its vector entries.
    private struct Client {
        var rows: [RowKey: String] = [:]
        var knowledge = OwnerKnowledge()
    }

    @Test(arguments: 1...12)
    func pagesEqualTheModels(seed: UInt64) async throws {
        var random = SeededRandom(seed: seed)
        let world = World(partitions: Int.random(in: 1...2, using: &random))
        world.pieceSize = Bool.random(using: &random) ? 1 << 20 : 400
        let owners: [SyncID] = ["abc", "def", "ghi"]
        // More devices than a reader has cursors of their own, and than an owner has without the index by time.
        let deviceCount = [2, 5, 25, 150][Int(seed) % 4]
        var clients: [SyncID: [Client]] = Dictionary(
            uniqueKeysWithValues: owners.map { ($0, Array(repeating: Client(), count: 3)) })
        if deviceCount > 100 {
            for owner in owners {
                try world.upload(
                    (0..<100).map { .person("s\($0)", by: "k\($0)", index: $0) }, owner: owner)
            }
        }
        try await withFanOut(world) { service in
            for _ in 0..<60 {
                for _ in 0..<Int.random(in: 0...3, using: &random) {
                    try write(world, owners, deviceCount, &random)
                }
                try await service.caughtUp(with: world)
                let owner = owners.randomElement(using: &random)!
                let chosen = Int.random(in: 0..<3, using: &random)
                try await pullOnce(world, service, owner, &clients[owner]![chosen], &random)
            }
            for owner in owners {
                for index in 0..<3 {
                    try await drain(world, service, owner, &clients[owner]![index])
                }
            }
        }
    }

    private func write(
        _ world: World, _ owners: [SyncID], _ deviceCount: Int, _ random: inout SeededRandom
    ) throws {
        let device = KnowledgeID(unchecked: "k\(Int.random(in: 0..<deviceCount, using: &random))")
        let changes = (0..<Int.random(in: 1...6, using: &random)).map { index in
            let id = RowID(
                unchecked: (random.once(in: 4) ? "s" : "r") + "\(Int.random(in: 0..<40, using: &random))")
            let name = String(repeating: "x", count: Int.random(in: 0...200, using: &random))
            return Change.person(
                id, name: name, by: device, index: index, isDelete: Int.random(in: 0..<8, using: &random) == 0)
        }
        try world.upload(
            changes, owner: owners.randomElement(using: &random)!, device: Device(caller: "abc", knowledgeID: device))
    }

    /// One page with random limits and held rows, held against the model to the byte.
    private func pullOnce(
        _ world: World, _ service: Service, _ owner: SyncID, _ client: inout Client, _ random: inout SeededRandom
    ) async throws {
        var knowledge = client.knowledge
        if Int.random(in: 0..<10, using: &random) == 0 { knowledge.entries["never"] = .zero }
        let stream = world.stream(of: owner)
        let lacking = stream.filter { $0.timeStamp > knowledge[$0.knowledgeID] }
        var held: Set<TimeStamp> = []
        for row in lacking where Int.random(in: 0..<6, using: &random) == 0 { held.insert(row.timeStamp) }
        let limit = Int.random(in: 1...15, using: &random)
        let bytes = Bool.random(using: &random) ? 1 << 20 : Int.random(in: 1...3000, using: &random)
        let maximumEntries = [0, 3, Int.max].randomElement(using: &random)!
        let rows = try await service.pull(
            knowledge, of: owner, held: held, limit: limit, bytes: bytes, maximumEntries: maximumEntries)

        let expected = page(lacking.filter { !held.contains($0.timeStamp) }, limit, bytes, world)
        #expect(rows.count == expected.sent.count)
        // As one expectation: describing the difference of long texts is slow.
        let isSame = rows.text == expected.sent.map(world.json).joined(separator: ",")
        try #require(isSame)
        #expect(rows.hasMore == expected.isCut)
        #expect(rows.head == world.head(of: owner))
        var entries = knowledge.entries
        let last = expected.isCut ? expected.sent.last?.timeStamp ?? .zero : .maximum
        for row in lacking where row.timeStamp <= last {
            entries[row.knowledgeID] = max(entries[row.knowledgeID] ?? .zero, row.timeStamp)
        }
        if !expected.isCut {
            // Heads that the floor covers need no entry; all others are named.
            for row in stream where row.timeStamp > knowledge.floor || entries[row.knowledgeID] != nil {
                entries[row.knowledgeID] = max(entries[row.knowledgeID] ?? .zero, row.timeStamp)
            }
        }
        if entries.count > maximumEntries, !expected.isCut {
            try #require(rows.floor == max(rows.head, knowledge.highest) && rows.entries.isEmpty)
        } else if entries.count > maximumEntries, let sent = expected.sent.last, sent.timeStamp >= knowledge.floor {
            try #require(rows.floor == sent.timeStamp)
            try #require(rows.knowledge == knowledge.entries.filter { $0.value > sent.timeStamp })
        } else {
            try #require(rows.floor == nil && rows.knowledge == entries)
            #expect(rows.entries.count == entries.count)
        }
        for row in lacking where held.contains(row.timeStamp) { client.rows[row.key] = world.json(row) }
        take(expected.sent, rows, world, &client)
        // Sometimes the device continues with a floor instead of its entries.
        if !rows.hasMore, Bool.random(using: &random) {
            client.knowledge = OwnerKnowledge(floor: rows.head)
        }
    }

    private func page(
        _ rows: [OrderedRow], _ limit: Int, _ bytes: Int, _ world: World
    ) -> (sent: [OrderedRow], isCut: Bool) {
        var sent: [OrderedRow] = []
        var size = 0
        for row in rows {
            size += world.json(row).utf8.count + (sent.isEmpty ? 0 : 1)
            if sent.count == limit || (size > bytes && !sent.isEmpty) { return (sent, true) }
            sent.append(row)
        }
        return (sent, false)
    }

    private func take(_ sent: [OrderedRow], _ rows: OwnerRows, _ world: World, _ client: inout Client) {
        for row in sent { client.rows[row.key] = world.json(row) }
        if let floor = rows.floor {
            #expect(floor >= client.knowledge.floor)
            client.knowledge = OwnerKnowledge(floor: floor)
        }
        for (device, timeStamp) in rows.entries {
            #expect(timeStamp >= client.knowledge.entries[device] ?? .zero)
            client.knowledge.entries[device] = timeStamp
        }
        client.knowledge.cutFrom = rows.cutFrom(known: client.knowledge.cutFrom)
    }

    /// Pulls until there is no more: the device then has what the server has.
    private func drain(_ world: World, _ service: Service, _ owner: SyncID, _ client: inout Client) async throws {
        while true {
            let lacking = world.stream(of: owner).filter { $0.timeStamp > client.knowledge[$0.knowledgeID] }
            let rows = try await service.pull(client.knowledge, of: owner, limit: 7)
            take(Array(lacking.prefix(rows.count)), rows, world, &client)
            if !rows.hasMore { break }
        }
        let server = Dictionary(uniqueKeysWithValues: world.stream(of: owner).map { ($0.key, world.json($0)) })
        let isSame = client.rows == server
        try #require(isSame)
        let idle = service.fanOut.idlePage(OwnerPull(owner: owner, knowledge: client.knowledge))
        #expect(idle != nil)
    }
}
