import ChangeLog
import FanOut
import FanOutLink
import Metrics
import SyncModel
import Testing

@Suite(.timeLimit(.minutes(5))) struct MetricsTests {
    private let registry = MetricRegistry()

    private func pulls(_ outcome: String) -> Int { registry.counter(.fanOutPulls, [.outcome: outcome]).value }

    @Test func countsResultsOnceAndMeasuresTheirLatencySinceTheUpload() async throws {
        let world = World()
        world.pieceSize = 300
        // The log timestamp of the first upload; each further one is a millisecond later.
        let first: Int64 = 1_700_000_000_001_000
        let metrics = FanOutMetrics(registry, now: { first + 3_000_000 })
        let persons = (0..<8).map { Change.person("p\($0)", name: String(repeating: "x", count: 60), index: $0) }
        try world.upload(persons, batch: 1)
        let records = world.log.records(of: world.ordered(), from: 0, maximumBytes: .max)
        #expect(records.count > 2)
        try await withFolder { folder in
            try await withFanOut(world, in: folder, metrics: metrics) { service in
                // Repeated by another worker: dropped.
                for record in records { world.log.append(record.value, to: world.ordered()) }
                try world.upload([.person("p0", name: "B")], batch: 2)
                try await service.caughtUp(with: world)
                let end = try await world.end(0)
                #expect(registry.gauge(.fanOutServing, [.partition: "0"]).value == 1)
                #expect(registry.position(of: .fanOut, in: 0).value == Int(end))
                let page = try await service.pull()
                #expect(page.count == 8)
                #expect(registry.histogram(.fanOutPageBytes).snapshot.sum == page.json.count)
            }
        }
        #expect(registry.counter(.fanOutRows).value == 9)
        #expect(registry.histogram(.fanOutApplyRecords).snapshot.sum == records.count + 1)
        let times = registry.histogram(.uploadToPullable).snapshot
        #expect(times.cumulative.last == 2)
        #expect(times.sum == 5_999_000_000)
        #expect(pulls("read") == 1)
        #expect(registry.histogram(.fanOutPageRows).snapshot.sum == 8)
        #expect(registry.gauge(.fanOutServing, [.partition: "0"]).value == 0)
        #expect(registry.position(of: .fanOut, in: 0).value == nil)
        #expect(registry.counter(.fanOutRebuilds).value == world.partitions)
    }

    /// Its lag shows, too, while the first record that comes afterwards cannot be applied.
    @Test func theNextRecordIsKnownOfAPartitionThatHadNothingToApplyAtItsStart() async throws {
        let world = World()
        try world.upload([.person("p0", name: "A")], batch: 1)
        try await withFolder { folder in
            for _ in 0..<2 {
                try await withFanOut(world, in: folder, metrics: FanOutMetrics(registry)) { service in
                    try await service.caughtUp(with: world)
                    #expect(registry.position(of: .fanOut, in: 0).value == Int(try await world.end(0)))
                }
            }
        }
    }

    @Test func countsIdleAndFailedPullsSeparately() async throws {
        let world = World()
        try await withFolder { folder in
            try await withFanOut(world, in: folder, metrics: FanOutMetrics(registry)) { service in
                #expect(service.fanOut.idlePage(OwnerPull(owner: "abc", knowledge: OwnerKnowledge())) != nil)
                await service.fanOut.stop()
                await #expect(throws: FanOutError.self) { try await service.pull() }
            }
        }
        #expect(pulls("idle") == 1)
        #expect(pulls("read") == 0)
        #expect(pulls("failed") == 1)
    }
}
