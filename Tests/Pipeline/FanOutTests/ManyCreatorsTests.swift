import FanOut
import FanOutLink
import Metrics
import SyncModel
import Testing

/// What a pull reads depends on what it sends, not on how many devices have created rows of the owner.
@Suite(.timeLimit(.minutes(5))) struct ManyCreatorsTests {
    private let registry = MetricRegistry()

    private var records: Int { registry.histogram(.fanOutPullRecords).snapshot.sum }
    private var comparedHeads: Int { registry.counter(.fanOutComparedHeads).value }

    /// Writes `rounds` rows for each of so many creating devices.
    ///
    /// - Returns: the head after each round.
    private func write(_ world: World, creators: Int, rounds: Int, owner: SyncID = "abc") throws -> [TimeStamp] {
        try (0..<rounds).map { round in
            for first in stride(from: 0, to: creators, by: 500) {
                let numbers = first..<min(first + 500, creators)
                try world.upload(
                    numbers.map { .person("p\(round)-\($0)", by: "k\($0)", index: $0 - first) }, owner: owner)
            }
            return world.head(of: owner)
        }
    }

    private func withService<Result>(_ world: World, _ body: (Service) async throws -> Result) async throws -> Result {
        try await withFolder { folder in
            try await withFanOut(world, in: folder, metrics: FanOutMetrics(registry)) { service in
                try await service.caughtUp(with: world)
                return try await body(service)
            }
        }
    }

    /// The records that one pull reads.
    private func records(_ pull: () async throws -> Void) async throws -> Int {
        let before = records
        try await pull()
        return records - before
    }

    @Test func aPullWithLimit1ReadsAsMuchWhateverTheNumberOfCreators() async throws {
        var read: [[Int]] = []
        for creators in [200, 2000] {
            let world = World()
            let heads = try write(world, creators: creators, rounds: 2)
            read.append(
                try await withService(world) { service in
                    var read: [Int] = []
                    // A new device, and one that has the first row of each creator.
                    for knowledge in [OwnerKnowledge(), OwnerKnowledge(floor: heads[0])] {
                        read.append(
                            try await records {
                                let rows = try await service.pull(knowledge, limit: 1)
                                #expect(rows.count == 1 && rows.hasMore)
                            })
                    }
                    return read
                })
        }
        #expect(read[0] == read[1])
    }

    /// A new device, one that has the first row of each creator, and one that has everything.
    @Test func aPullThatNamesNoDeviceComparesAsManyHeadsWhateverTheNumberOfCreators() async throws {
        var compared: [[Int]] = []
        for creators in [200, 2000] {
            let world = World()
            let heads = try write(world, creators: creators, rounds: 2)
            compared.append(
                try await withService(world) { service in
                    var compared: [Int] = []
                    for floor in [.zero, heads[0], heads[1]] {
                        let before = comparedHeads
                        let rows = try await service.pull(OwnerKnowledge(floor: floor), limit: 1)
                        #expect(rows.hasMore == (floor < heads[1]))
                        let first = world.stream(of: "abc").first { $0.timeStamp > floor }
                        #expect(rows.knowledge == (first.map { [$0.knowledgeID: $0.timeStamp] } ?? [:]))
                        compared.append(comparedHeads - before)
                    }
                    return compared
                })
        }
        #expect(compared[0] == compared[1])
        #expect(compared[0].last == 0)
    }

    @Test func aVectorWithAFloorAtTheHeadIsComparedWithTheDevicesThatItNames() async throws {
        let world = World()
        let heads = try write(world, creators: 2000, rounds: 2)
        try await withService(world) { service in
            let owned = try #require(world.stream(of: "abc").last)
            let named =
                [owned.knowledgeID: owned.timeStamp, "k0": heads[1], "other": heads[1]] as [KnowledgeID: TimeStamp]
            let before = comparedHeads
            let knowledge = OwnerKnowledge(floor: heads[1], entries: named)
            let idle = try #require(service.fanOut.idlePage(OwnerPull(owner: "abc", knowledge: knowledge)))
            #expect(
                idle.content
                    == .rows(
                        OwnerRows(entries: named.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }, head: heads[1]))
            )
            #expect((1...10).contains(comparedHeads - before))
            // One that lacks rows of a device that it names.
            let behind = OwnerKnowledge(floor: heads[1], entries: ["k7": heads[0]])
            #expect(service.fanOut.idlePage(OwnerPull(owner: "abc", knowledge: behind)) == nil)
            let rows = try await service.pull(behind)
            #expect(rows.count == 1 && !rows.hasMore && rows.knowledge.keys.elementsEqual(["k7"]))
            #expect(comparedHeads - before < 30)
        }
    }

    /// Where a vector names devices and others may have news, all are compared: in a reader's turn where they are many.
    @Test func manyDevicesAreNotComparedOnTheThreadOfTheRequest() async throws {
        let world = World()
        let heads = try write(world, creators: 1001, rounds: 1)
        try world.upload([.person("last", by: "k5")])
        let head = world.head(of: "abc")
        try await withService(world) { service in
            let pull = OwnerPull(owner: "abc", knowledge: OwnerKnowledge(floor: heads[0], entries: ["k5": head]))
            let before = comparedHeads
            #expect(service.fanOut.idlePage(pull) == nil)
            #expect(comparedHeads == before)
            let rows = try await service.pull(pull.knowledge)
            #expect(rows.count == 0 && !rows.hasMore && rows.knowledge == ["k5": head])
            #expect(comparedHeads > before)
        }
    }

    @Test func ownersAfterAFullPageAreNotRead() async throws {
        let world = World()
        var owners: [OwnerPull] = []
        for number in 0..<20 {
            let owner = SyncID(unchecked: "owner \(number)")
            _ = try write(world, creators: 10, rounds: 1, owner: owner)
            owners.append(OwnerPull(owner: owner, knowledge: OwnerKnowledge()))
        }
        try await withService(world) { service in
            var read: [Int] = []
            for count in [1, 20] {
                read.append(
                    try await records {
                        let pages = try await service.fanOut.pull(
                            PagePull(owners: Array(owners.prefix(count)), limit: 5, maximumBytes: 1 << 20),
                            within: .seconds(60))
                        #expect(pages.count == count)
                    })
            }
            #expect(read[0] == read[1])
        }
    }

    /// Between the rows that the device lacks are more rows of a device that it names than a step reads.
    @Test func rowsThatTheDeviceHasArePassedInSteps() async throws {
        let world = World()
        let heads = try write(world, creators: 100, rounds: 1)
        for batch in 0..<12 {
            try world.upload((0..<1000).map { .person("q\(batch)-\($0)", by: "k99", index: $0) })
        }
        let named = ["k99": world.head(of: "abc")] as [KnowledgeID: TimeStamp]
        try world.upload([.person("last", by: "k98")])
        try await withService(world) { service in
            let newest = try #require(world.stream(of: "abc").last)
            let read = try await records {
                let rows = try await service.pull(OwnerKnowledge(floor: heads[0], entries: named))
                #expect(rows.text == world.json(newest))
                #expect(!rows.hasMore)
                #expect(rows.knowledge == named.merging(["k98": newest.timeStamp]) { $1 })
            }
            #expect(read > 12_000)
            // A page with rows ends after a step.
            let cut = try await service.pull(OwnerKnowledge(entries: named))
            #expect(cut.count == 99 && cut.hasMore)
            var knowledge = OwnerKnowledge(entries: cut.knowledge)
            knowledge.cutFrom = cut.cutFrom(known: nil)
            let rest = try await service.pull(knowledge)
            #expect(rest.text == world.json(newest) && !rest.hasMore)
        }
    }

    /// The vector has more entries than are searched one by one.
    @Test func aLongVectorIsReadFromTheIndexByTime() async throws {
        let world = World()
        let heads = try write(world, creators: 1500, rounds: 2)
        try await withService(world) { service in
            let first = world.stream(of: "abc").prefix(1500)
            let all = first.map { ($0.knowledgeID, $0.timeStamp) }
            let knowledge = OwnerKnowledge(entries: Dictionary(uniqueKeysWithValues: all))
            let read = try await records {
                let rows = try await service.pull(knowledge, limit: 1)
                #expect(rows.text == world.json(world.stream(of: "abc")[1500]))
            }
            #expect(read < 2000)
            let rows = try await service.pull(knowledge, limit: 1000, maximumEntries: 1000)
            #expect(rows.count == 1000 && rows.floor == TimeStamp(heads[0].rawValue + 1000) && rows.entries.isEmpty)
            let rest = try await service.pull(OwnerKnowledge(floor: rows.floor), maximumEntries: 1000)
            #expect(rest.count == 500 && rest.floor == nil && rest.entries.count == 500 && !rest.hasMore)
            let drained = try await service.pull(
                OwnerKnowledge(floor: rows.floor, entries: rest.knowledge), maximumEntries: 499)
            #expect(drained == OwnerRows(floor: heads[1], head: heads[1]))
        }
    }

    @Test func aDeviceThatHasAllButANewCreatorReadsThatOneAlone() async throws {
        let world = World()
        _ = try write(world, creators: 500, rounds: 3)
        try await withService(world) { service in
            let drained = OwnerKnowledge(entries: try await service.pull(limit: 10_000).knowledge)
            try world.upload([.person("new", by: "new")])
            try await service.caughtUp(with: world)
            let read = try await records {
                let rows = try await service.pull(drained)
                #expect(rows.count == 1 && rows.knowledge.count == 501)
            }
            #expect(read < 10)
        }
    }
}
