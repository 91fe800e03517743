import ChangeLog
import FanOut
import FanOutLink
import Foundation
import Metrics
import PartitionSupervision
import RecordStore
import SQLite
import SyncModel
import Synchronization
import TestClocks
import Testing

/// Files that are missing, have a different epoch, or are behind the log are rebuilt from the tables and the rest of
/// `ordered`.
@Suite(.timeLimit(.minutes(5))) struct RebuildTests {
    private static func inSmallSteps(_ configuration: inout FanOutConfiguration) {
        configuration.rebuildRows = 10
        configuration.rebuildReports = .zero
    }

    private func fill(_ world: World) throws {
        world.writesTables = true
        for batch in 1...20 {
            try world.upload(
                [.person("p\(batch)"), .note("n\(batch % 4)", body: "b\(batch)", index: 1)], batch: Int64(batch))
            try world.upload([.person("p\(batch % 5)", by: "k2")], owner: "def", device: .second, batch: Int64(batch))
        }
    }

    private func expectAll(_ world: World, _ service: Service) async throws {
        for owner: SyncID in ["abc", "def"] {
            let rows = try await service.pull(of: owner)
            let isSame = rows.text == world.stream(of: owner).map(world.json).joined(separator: ",")
            try #require(isSame)
            #expect(rows.head == world.head(of: owner))
        }
        for batch in Int64(1)...20 {
            let key = DeviceKey(owner: "def", device: .second)
            let kept = try await service.fanOut.keptOutcome(of: batch, for: key, rows: .all, within: .zero)
            #expect((kept != nil) == (batch > 4))
        }
    }

    @Test func rebuildsADeletedFileFromTheTables() async throws {
        let world = World()
        try fill(world)
        try await withFolder { folder in
            try await withFanOut(world, in: folder) { service in
                try await service.caughtUp(with: world)
                try FileManager.default.removeItem(atPath: service.file())
            }
            // The log no longer has the rows' records, and the tables are slightly behind.
            world.log.removeRecords(below: try await world.end(), of: world.ordered())
            world.writesTables = false
            try world.upload([.person("p1", name: "tail")], batch: 21)
            try await withFanOut(world, in: folder, configure: Self.inSmallSteps) { service in
                try await service.caughtUp(with: world)
                try await expectAll(world, service)
                let events = service.events.events
                #expect(events.contains(.rebuilt(rows: 29)))
                let progress = events.filter { if case .rebuilding = $0 { true } else { false } }
                #expect(progress.count > 2)
                // Outcomes from the tables have no upload reference: a waiting caller retries.
                let first = PartReference(
                    upload: UploadReference(partition: 0, offset: 38), part: 0,
                    key: DeviceKey(owner: "abc", device: .first), batch: 20)
                await #expect(throws: FanOutError.pending) {
                    try await service.fanOut.outcome(of: first, rows: .all, within: .zero)
                }
            }
        }
    }

    @Test func resumesAnExistingFileWithoutRebuilding() async throws {
        let world = World()
        try fill(world)
        try await withFolder { folder in
            try await withFanOut(world, in: folder) { try await $0.caughtUp(with: world) }
            let snapshots = world.store.snapshotCount
            world.log.removeRecords(below: try await world.end(), of: world.ordered())
            try world.upload([.person("p1", name: "tail")], batch: 21)
            try await withFanOut(world, in: folder) { service in
                try await service.caughtUp(with: world)
                try await expectAll(world, service)
                #expect(!service.events.hasDamage)
            }
            #expect(world.store.snapshotCount == snapshots)
        }
    }

    @Test func rebuildsWhenTheLogNoLongerHasTheNextRecord() async throws {
        let world = World()
        try fill(world)
        try await withFolder { folder in
            try await withFanOut(world, in: folder) { try await $0.caughtUp(with: world) }
            try world.upload([.person("p1", name: "lost")])
            world.log.removeRecords(below: try await world.end(), of: world.ordered())
            try world.upload([.person("p1", name: "tail")])
            try await withFanOut(world, in: folder) { service in
                try await service.caughtUp(with: world)
                try await expectAll(world, service)
                #expect(service.events.hasDamageOfAFile)
            }
        }
    }

    /// From this position it has later parts; the results before them in the new topic would be missing.
    @Test func rebuildsWhenOrderedWasRecreatedAndIsLongerThanTheStream() async throws {
        let world = World()
        world.writesTables = true
        try world.upload([.person("p1")], batch: 1)
        try await withFolder { folder in
            try await withFanOut(world, in: folder) { try await $0.caughtUp(with: world) }
            world.recreateOrdered()
            for batch in 2...5 { try world.upload([.person("p\(batch)")], batch: Int64(batch)) }
            try await withFanOut(world, in: folder) { service in
                await service.events.wait { $0.contains(.rebuilt(rows: 5)) }
                try await service.caughtUp(with: world)
                let rows = try await service.pull()
                #expect(rows.text == world.stream(of: "abc").map(world.json).joined(separator: ","))
                #expect(service.events.hasDamageOfAFile)
            }
        }
    }

    @Test func waitsForTablesBehindTheStartOfTheLog() async throws {
        let world = World()
        try world.upload([.person("p1")])
        world.log.removeRecords(below: try await world.end(), of: world.ordered())
        try world.upload([.person("p2")])
        try await withFolder { folder in
            try await withFanOut(world, in: folder, awaitReady: false) { service in
                await service.events.wait { $0.contains(where: \.isRetry) }
                await #expect(throws: FanOutError.self) { try await service.pull() }
                #expect(!service.fanOut.isReady)
                world.writeTables()
                await service.events.ready()
                try await service.caughtUp(with: world)
                let rows = try await service.pull()
                #expect(rows.text == world.stream(of: "abc").map(world.json).joined(separator: ","))
            }
        }
    }

    @Test func servesNothingWhileTheLogHasAGapAfterTheTables() async throws {
        let world = World()
        try world.upload([.person("p1")])
        world.writeTables()
        try world.upload([.person("p2")])
        world.log.removeRecords(below: try await world.end(), of: world.ordered())
        try await withFolder { folder in
            try await withFanOut(world, in: folder, awaitReady: false) { service in
                await service.events.wait { $0.count(where: \.isRetry) > 3 }
                let wasReady = service.events.events.contains(where: \.isReady)
                #expect(!wasReady)
                world.writeTables()
                await service.events.ready()
                let rows = try await service.pull()
                #expect(rows.count == 2)
            }
        }
    }

    @Test func waitsForTheSchemaVersionOfTheTables() async throws {
        let world = World()
        let known = KnownSchemas(world.schemas)
        world.addSchema(Schema(tables: World.schema.tables + [Table(name: "more", columns: [])]))
        try world.upload([.person("p1")])
        world.writeTables()
        try await withFolder { folder in
            try await withFanOut(world, in: folder, awaitReady: false, schemas: known) { service in
                await service.events.wait { $0.contains { if case .waiting = $0 { true } else { false } } }
                known.learn(world.schemas)
                await service.events.ready()
                let rows = try await service.pull()
                #expect(rows.count == 1)
                #expect(!service.events.hasRetry)
            }
        }
    }

    @Test func startsAtTheLogsStartWhenThatIsTheFirstResult() async throws {
        let world = World()
        // A log whose offsets do not start at 0.
        world.log.removeRecords(below: 5, of: world.ordered())
        try world.upload([.person("p1")])
        try await withFanOut(world) { service in
            try await service.caughtUp(with: world)
            #expect(try await service.pull().count == 1)
        }
    }

    @Test func restartsAnInterruptedRebuild() async throws {
        let world = World()
        try fill(world)
        world.log.removeRecords(below: try await world.end(), of: world.ordered())
        world.store.failSnapshots(with: [.init(.unavailable, message: "later", isRetriable: true)])
        try await withFolder { folder in
            let clock = ManualClock()
            try await withFanOut(world, in: folder, clock: clock, awaitReady: false) { service in
                await clock.sleepers(1)
                await #expect(throws: FanOutError.self) { try await service.pull() }
            }
            // Its incomplete file has no position.
            #expect(FileManager.default.fileExists(atPath: folder + "/fanout-0.db"))
            try await expectUnfinished(in: folder)
            try await withFanOut(world, in: folder) { service in
                try await expectAll(world, service)
                #expect(service.events.hasDamage)
            }
        }
    }

    /// The meta record is written last: a rebuild interrupted after some or all rows lacks it.
    @Test(arguments: [0, 1, 3, 100]) func makesAnUnfinishedFileAnewWhateverItHolds(pieces: Int) async throws {
        let world = World()
        try fill(world)
        world.log.removeRecords(below: try await world.end(), of: world.ordered())
        world.store.failSnapshots(
            with: [.init(.unavailable, message: "later", isRetriable: true)], afterPieces: pieces)
        try await withFolder { folder in
            let clock = ManualClock()
            let configure = { (configuration: inout FanOutConfiguration) in configuration.rebuildRows = 1 }
            try await withFanOut(world, in: folder, clock: clock, awaitReady: false, configure: configure) { _ in
                await clock.sleepers(1)
            }
            let connection = try Connection(path: folder + "/fanout-0.db", access: .readWriteCreate())
            for (object, isThere) in [("stream", pieces > 0), ("meta", false)] {
                var statement = try connection.prepare("SELECT 1 FROM \(object)")
                #expect(try statement.step() == isThere, "\(object)")
            }
            try connection.close()
            try await expectUnfinished(in: folder)
            try await withFanOut(world, in: folder) { service in
                try await expectAll(world, service)
                #expect(service.events.hasDamageOfAFile)
            }
            try await withFanOut(world, in: folder) { service in
                try await expectAll(world, service)
                #expect(!service.events.hasDamage)
            }
        }
    }

    private func expectUnfinished(in folder: String) async throws {
        let failure = await #expect(throws: StreamAudit.Failure.self) {
            let audit = try await StreamAudit.open(directory: folder, partition: 0, epoch: "epoch")
            try await audit.close()
        }
        #expect(failure?.isMissing == true)
        #expect(failure?.description == "the file is incomplete")
    }

    @Test func reportsProgress() async throws {
        let world = World()
        try fill(world)
        world.log.removeRecords(below: try await world.end(), of: world.ordered())
        // Every piece takes three seconds.
        let clock = ManualClock()
        let pieces = Mutex(0)
        let registry = MetricRegistry()
        let gauges = [Metric.fanOutRebuildRows, .fanOutRebuildExpectedRows].map {
            registry.gauge($0, [.partition: "0"])
        }
        let seen = Mutex<[[Int?]]>([])
        world.store.onPieces {
            clock.advance(by: .seconds(3))
            pieces.withLock { $0 += 1 }
            seen.withLock { $0.append(gauges.map(\.value)) }
        }
        try await withFolder { folder in
            let configure = { (configuration: inout FanOutConfiguration) in configuration.rebuildRows = 1 }
            try await withFanOut(
                world, in: folder, clock: clock, metrics: FanOutMetrics(registry), configure: configure
            ) { service in
                let told = service.events.events.compactMap { event in
                    if case .rebuilding(let progress) = event { progress } else { nil }
                }
                // 29 rows and the newest 16 outcomes of two devices, a piece each.
                let (rows, total) = (29, 29 + 32)
                #expect(told.first == RebuildProgress(done: 0, total: total, isExact: true))
                // Time is measured from the first rows; chunks take three seconds, so a report is due every six.
                let times = told.dropFirst().map(\.elapsed)
                #expect(times == (1...times.count).map { .seconds(6 * $0) })
                #expect(times.count == (pieces.withLock { $0 } - 2) / 2)
                #expect(zip(told, told.dropFirst()).allSatisfy { $0.done <= $1.done })
                #expect(service.events.events.contains(.rebuilt(rows: rows)))
                let shown = seen.withLock { $0 }
                #expect(shown.first == [0, total])
                #expect(shown.last == [total - 16, total])
                #expect(gauges.map(\.value) == [0, 0])
            }
        }
    }

    @Test func progressNamesTheRateAndTheRemainingTime() {
        func words(_ done: Int, of total: Int, _ elapsed: Duration, isExact: Bool = true) -> String {
            RebuildProgress(done: done, total: total, isExact: isExact, elapsed: elapsed).description
        }
        #expect(words(0, of: 5, .zero) == "0 of 5 rows and outcomes")
        #expect(
            words(1000, of: 10_500, .milliseconds(400), isExact: false)
                == "1000 of about 10500 rows and outcomes, 2500 a second, 4 s left")
        #expect(words(100, of: 12_000, .seconds(1)) == "100 of 12000 rows and outcomes, 100 a second, 119 s left")
        #expect(words(100, of: 12_100, .seconds(1)) == "100 of 12100 rows and outcomes, 100 a second, 2 min left")
        #expect(words(100, of: 720_001, .seconds(1)).hasSuffix(", 2 h left"))
        // An estimate that was too low.
        #expect(words(12, of: 10, .seconds(1), isExact: false).hasPrefix("12 of about 12 rows"))
    }

    @Test func rejectsAFileWithADifferentEpoch() async throws {
        let world = World()
        try fill(world)
        try await withFolder { folder in
            try await withFanOut(world, in: folder) { try await $0.caughtUp(with: world) }
            let other = World(epoch: "other")
            try other.upload([.person("p1")], owner: "def")
            try await withFanOut(other, in: folder) { service in
                try await service.caughtUp(with: other)
                #expect(try await service.pull(of: "abc") == OwnerRows())
                #expect(try await service.pull(of: "def").count == 1)
            }
        }
    }

    @Test func twoWritersOfOneFileDetectEachOther() async throws {
        let world = World()
        try await withFolder { folder in
            try await withFanOut(world, in: folder) { first in
                try await withFanOut(world, in: folder) { second in
                    for index in 0..<20 { try world.upload([.person("p\(index)")]) }
                    try await first.caughtUp(with: world)
                    try await second.caughtUp(with: world)
                    for service in [first, second] {
                        await service.events.wait { events in events.last.map { !$0.isRetry } ?? false }
                        let rows = try await service.pull()
                        #expect(rows.text == world.stream(of: "abc").map(world.json).joined(separator: ","))
                        // Neither fan-out reports rows of the other as damage.
                        #expect(!service.events.hasDamageOfAFile)
                    }
                }
            }
        }
    }
}
