import FanOut
import FanOutLink
import SyncModel
import Testing

@Suite(.timeLimit(.minutes(5))) struct PullTests {
    @Test func sendsRowsInTheContractsFormat() async throws {
        let world = World()
        try world.upload([
            .person("p1", name: "A"), .note("n1", body: "x", index: 1, updatedAt: 1_600_000_000_123_456),
        ])
        try await withFanOut(world) { service in
            try await service.caughtUp(with: world)
            let rows = try await service.pull()
            #expect(
                rows.text
                    == #"{"table":"person","id":"p1","syncId":"abc","knowledgeId":"k1","timeStamp":100,"version":1,"#
                    + #""deleted":false,"writer":{"syncId":"abc","knowledgeId":"k1"},"values":{"name":"A","age":1}},"#
                    + #"{"table":"note","id":"n1","syncId":"abc","knowledgeId":"k1","timeStamp":101,"version":1,"#
                    + #""deleted":false,"updatedAt":"2020-09-13T12:26:40.123456Z","#
                    + #""writer":{"syncId":"abc","knowledgeId":"k1"},"values":{"body":"x"}}"#)
            #expect(rows.count == 2)
            #expect(rows.head == TimeStamp(101))
            #expect(rows.knowledge == ["k1": TimeStamp(101)])
            #expect(!rows.hasMore)
        }
    }

    @Test func sendsTheNewestStateOfARowOnce() async throws {
        let world = World()
        try world.upload([.person("p1", name: "A"), .person("p2", name: "B", index: 1)])
        try world.upload([.person("p1", name: "C", by: "k2")], device: .second)
        try await withFanOut(world) { service in
            try await service.caughtUp(with: world)
            let rows = try await service.pull()
            #expect(rows.text == world.stream(of: "abc").map(world.json).joined(separator: ","))
            #expect(rows.count == 2)
            // The row keeps its creator: its newest timeStamp counts for the device that made it.
            #expect(rows.knowledge == ["k1": TimeStamp(102)])
        }
    }

    @Test func leavesOutWhatTheDeviceHolds() async throws {
        let world = World()
        try world.upload([.person("p1"), .person("p2", index: 1), .person("p3", index: 2)])
        try await withFanOut(world) { service in
            try await service.caughtUp(with: world)
            // The first and last are results of the same answer.
            let rows = try await service.pull(held: [TimeStamp(100), TimeStamp(102)])
            #expect(rows.text == world.json(world.stream(of: "abc")[1]))
            #expect(rows.knowledge == ["k1": TimeStamp(102)])
            #expect(!rows.hasMore)
            // On a cut page no row after the last one sent counts as passed, held or not.
            let cut = try await service.pull(held: [TimeStamp(101)], limit: 1)
            #expect(cut.hasMore)
            #expect(cut.knowledge == ["k1": TimeStamp(100)])
            // When all remaining rows are held, `hasMore` is false.
            let last = try await service.pull(held: [TimeStamp(101), TimeStamp(102)], limit: 1)
            #expect(!last.hasMore)
            #expect(last.knowledge == ["k1": TimeStamp(102)])
        }
    }

    @Test func echoesEntriesThatWereSentAndNeverLowersThem() async throws {
        let world = World()
        try world.upload([.person("p1")])
        try world.upload([.person("p2", by: "k2")], device: .second)
        try await withFanOut(world) { service in
            try await service.caughtUp(with: world)
            let sent: [KnowledgeID: TimeStamp] = ["k1": TimeStamp(101), "k9": .zero, "k8": TimeStamp(50)]
            let rows = try await service.pull(OwnerKnowledge(entries: sent))
            #expect(
                rows.knowledge == [
                    "k1": TimeStamp(101), "k2": TimeStamp(101), "k8": TimeStamp(50), "k9": .zero,
                ])
            #expect(rows.entries.map(\.device) == ["k1", "k2", "k8", "k9"])
            #expect(rows.count == 1)
        }
    }

    @Test func countsAFloorForDevicesNotNamed() async throws {
        let world = World()
        try world.upload([.person("p1")])
        try world.upload([.person("p2", by: "k2")], device: .second)
        try world.upload([.person("p3", by: "k3")], device: Device(caller: "abc", knowledgeID: "k3"))
        try await withFanOut(world) { service in
            try await service.caughtUp(with: world)
            let rows = try await service.pull(OwnerKnowledge(floor: TimeStamp(101), entries: ["k1": .zero]))
            // k1 is named below the floor; k2's row is at the floor and needs no entry; k3's is above it.
            let stream = world.stream(of: "abc")
            #expect(rows.text == world.json(stream[0]) + "," + world.json(stream[2]))
            #expect(rows.knowledge == ["k1": TimeStamp(100), "k3": TimeStamp(102)])
        }
    }

    @Test func aPageReadInTwoPartsEqualsOneReadAtOnce() async throws {
        let world = World()
        let owners = ["abc", "def", "ghi"] as [SyncID]
        for owner in owners {
            let persons = (1...3).map { Change.person("p\($0)", name: "a long name", index: $0 - 1) }
            try world.upload(persons, owner: owner)
        }
        try await withFanOut(world) { service in
            try await service.caughtUp(with: world)
            let pulls = owners.map { OwnerPull(owner: $0, knowledge: OwnerKnowledge()) }
            for limit in 1...10 {
                for bytes in [1, 200, 400, 600, 1000, 100_000] {
                    let whole = try await service.fanOut.pull(
                        PagePull(owners: pulls, limit: limit, maximumBytes: bytes), within: .seconds(60))
                    var parts: [OwnerPage] = []
                    var request = PagePull(owners: [], limit: limit, maximumBytes: bytes)
                    for pull in pulls {
                        request.owners = [pull]
                        let page = try await service.fanOut.pull(request, within: .seconds(60))[0]
                        parts.append(page)
                        guard case .rows(let rows) = page.content, rows.count > 0 || rows.hasMore else { continue }
                        request.limit = rows.hasMore ? 0 : request.limit - rows.count
                        request.maximumBytes -= rows.json.count + (request.isContinued ? 1 : 0)
                        request.isContinued = true
                    }
                    #expect(parts == whole, "\(limit) rows, \(bytes) bytes")
                }
            }
        }
    }

    @Test func cutsAPageAtItsLimitsOverAllOwners() async throws {
        let world = World()
        for owner: SyncID in ["abc", "def"] {
            let persons = (1...3).map { Change.person("p\($0)", name: "a long name", index: $0 - 1) }
            try world.upload(persons, owner: owner)
        }
        try await withFanOut(world) { service in
            try await service.caughtUp(with: world)
            var owners = ["abc", "def"].map { OwnerPull(owner: SyncID(unchecked: $0), knowledge: OwnerKnowledge()) }
            func page(limit: Int, bytes: Int = 1 << 20) async throws -> [OwnerRows] {
                try await service.fanOut.pull(
                    PagePull(owners: owners, limit: limit, maximumBytes: bytes), within: .seconds(60)
                ).map { page in
                    guard case .rows(let rows) = page.content else { throw UnexpectedContent(pages: [page]) }
                    return rows
                }
            }
            let byRows = try await page(limit: 4)
            #expect(byRows.map(\.count) == [3, 1])
            #expect(byRows.map(\.hasMore) == [false, true])
            #expect(byRows[1].knowledge == ["k1": TimeStamp(103)])
            let full = try await page(limit: 3)
            #expect(full.map(\.count) == [3, 0])
            #expect(full[1].hasMore && full[1].entries.isEmpty && full[1].json.isEmpty)
            let size = world.json(world.stream(of: "abc")[0]).utf8.count
            let byBytes = try await page(limit: 10, bytes: 2 * size + 1)
            #expect(byBytes.map(\.count) == [2, 0])
            let short = try await page(limit: 10, bytes: 2 * size)
            #expect(short.map(\.count) == [1, 0])
            // A full page remains full, even if a row of a later owner would fit.
            try world.upload([.person("p", name: nil, age: nil)], owner: "small")
            try await service.caughtUp(with: world)
            owners[1] = OwnerPull(owner: "small", knowledge: OwnerKnowledge())
            let small = world.json(world.stream(of: "small")[0]).utf8.count
            #expect(small < size)
            let stillFull = try await page(limit: 10, bytes: size + small + 1)
            #expect(stillFull.map(\.count) == [1, 0])
            // One row is sent whatever its size.
            let tiny = try await page(limit: 10, bytes: 1)
            #expect(tiny.map(\.count) == [1, 0])
        }
    }

    @Test func keepsOwnersApart() async throws {
        let world = World()
        try world.upload([.person("same", name: "abc's")], owner: "abc")
        try world.upload([.person("same", name: "def's")], owner: "def")
        try world.upload([.person("same", name: "abc's 2")], owner: "abc")
        try await withFanOut(world) { service in
            try await service.caughtUp(with: world)
            for owner: SyncID in ["abc", "def"] {
                let rows = try await service.pull(of: owner)
                #expect(rows.text == world.json(world.stream(of: owner)[0]))
            }
            let nobody = try await service.pull(of: "ab")
            #expect(nobody == OwnerRows())
        }
    }

    @Test func refusesOwnersOfPartitionsThatItDoesNotServe() async throws {
        let world = World(partitions: 2)
        let owner = SyncID(
            unchecked: (0...).lazy.map { "o\($0)" }.first { world.partition(of: SyncID(unchecked: $0)) == 1 }!)
        try world.upload([.person("p1")], owner: owner)
        try await withFolder { folder in
            try await withFanOut(world, in: folder, partitions: [0]) { service in
                await #expect(throws: FanOutError.notReady("partition 1 is not served here")) {
                    _ = try await service.pull(of: owner)
                }
                #expect(service.fanOut.idlePage(OwnerPull(owner: owner, knowledge: OwnerKnowledge())) == nil)
            }
        }
    }
}
