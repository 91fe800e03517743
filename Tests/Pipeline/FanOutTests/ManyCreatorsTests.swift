import FanOut
import FanOutLink
import Metrics
import SyncModel
import Testing

/// What a pull reads depends on what it sends, not on how many devices have created rows of the owner.
@Suite(.timeLimit(.minutes(5))) struct ManyCreatorsTests {
    private let registry = MetricRegistry()

    private var records: Int { registry.histogram(.fanOutPullRecords).snapshot.sum }

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
            let idle = try #require(
                service.fanOut.idlePage(
                    OwnerPull(
                        owner: "abc", knowledge: OwnerKnowledge(floor: rows.floor, entries: rest.knowledge),
                        maximumEntries: 499)))
            #expect(idle.content == .rows(OwnerRows(floor: heads[1], head: heads[1])))
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
