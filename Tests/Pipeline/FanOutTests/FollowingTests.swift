import ChangeLog
import FanOut
import FanOutLink
import Metrics
import PartitionSupervision
import Seeded
import SyncModel
import SyncWire
import TestClocks
import Testing

/// `ordered` is applied once and in order, across restarts and failures (I2).
@Suite(.timeLimit(.minutes(5))) struct FollowingTests {
    private func expectModel(
        _ world: World, _ service: Service, _ owner: SyncID = "abc", sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let rows = try await service.pull(of: owner)
        let isSame = rows.text == world.stream(of: owner).map(world.json).joined(separator: ",")
        #expect(isSame, sourceLocation: sourceLocation)
        #expect(rows.head == world.head(of: owner), sourceLocation: sourceLocation)
    }

    @Test func dropsRepeatedPieces() async throws {
        let world = World()
        world.pieceSize = 300
        let persons = (0..<8).map { Change.person("p\($0)", name: String(repeating: "x", count: 60), index: $0) }
        let first = try world.upload(persons, batch: 1)
        try world.upload([.person("p0", name: "B")], batch: 2)
        let records = world.log.records(of: world.ordered(), from: 0, maximumBytes: .max)
        #expect(records.count > 4)
        try await withFanOut(world) { service in
            try await service.caughtUp(with: world)
            // As a successor: from the tables' position, which may be any part.
            for record in records { world.log.append(record.value, to: world.ordered()) }
            try world.upload([.person("p9")], batch: 3)
            try await service.caughtUp(with: world)
            try await expectModel(world, service)
            let kept = try await service.fanOut.keptOutcome(of: 1, for: first.key, rows: .all, within: .zero)
            #expect(kept?.results.map(\.index) == Array(0..<8))
            #expect(!service.events.hasRetry)
        }
    }

    @Test func reportsWhatCanBePulledAndWhereElseUploadsHaveParts() async throws {
        let world = World(partitions: 4)
        let own = world.partition(of: "abc")
        let owners = (0..<100).map { SyncID(unchecked: "owner \($0)") }
        let other = try #require(owners.first { world.partition(of: $0) != own })
        let neighbour = try #require(owners.first { world.partition(of: $0) == own })
        let there = world.partition(of: other)
        try await withFanOut(world) { service in
            try world.upload([.person("p1")], batch: 1, others: [neighbour, other])
            try world.upload([.person("p1")], owner: other)
            try world.upload([.person("p2")])
            let atTheirs = StreamReport(partition: there, uploads: [own: UploadProgress(offset: 1, part: 0)])
            var atOwn = StreamReport(
                partition: own, uploads: [own: UploadProgress(offset: 2, part: 0)], partsElsewhere: [there: 0])
            await service.events.reported { [atOwn] in
                $0.merged(own) == atOwn && $0.merged(there) == atTheirs
            }
            // The other parts of a repeat are ordered nevertheless.
            try world.upload([.person("p1")], batch: 1, others: [other])
            (atOwn.uploads[own], atOwn.partsElsewhere[there]) = (UploadProgress(offset: 3, part: 0), 3)
            await service.events.reported { [atOwn] in $0.merged(own) == atOwn }
        }
    }

    @Test func reportsThePartsThatTouchedLargeRows() async throws {
        let world = World()
        let text = String(repeating: "x", count: 5000)
        try await withFanOut(world) { service in
            try world.upload([.person("p1", name: text)])
            // In several pieces, of which the last one completes it.
            world.pieceSize = 300
            try world.upload([.person("p1", name: text), .person("p2")])
            try world.upload([.person("p2")])
            await service.events.reported { $0.merged(0).uploads[0]?.offset == 2 }
            let large = service.events.reports.merged(0).largeParts
            #expect(large.map(\.progress) == [UploadProgress(offset: 1, part: 0)])
            #expect(large.map(\.device) == [.first])
            #expect(large.allSatisfy { $0.source == 0 && (5000..<5100).contains($0.touchedBytes) })
        }
    }

    @Test func reportsEachStepOfALargeResult() async throws {
        let world = World()
        world.pieceSize = 300
        let persons = (0..<8).map { Change.person("p\($0)", name: String(repeating: "x", count: 60), index: $0) }
        try world.upload(persons, publishing: 0..<2)
        try await withFolder { folder in
            try await withFanOut(world, in: folder) { service in
                // When it is opened, and then without an end of the result.
                await service.events.reported { $0.count >= 2 }
                #expect(service.events.reports.allSatisfy { $0 == StreamReport(partition: 0) })
                world.publishRest()
                let end = StreamReport(partition: 0, uploads: [0: UploadProgress(offset: 0, part: 0)])
                await service.events.reported { $0.last == end }
            }
            try await withFanOut(world, in: folder) { service in
                await service.events.reported {
                    $0.first == StreamReport(partition: 0, uploads: [0: UploadProgress(offset: 0, part: 0)])
                }
            }
        }
    }

    @Test func resumesInTheMiddleOfAResultAfterARestart() async throws {
        let world = World()
        world.pieceSize = 300
        let persons = (0..<8).map { Change.person("p\($0)", name: String(repeating: "x", count: 60), index: $0) }
        let refusals = (8..<12).map {
            Refusal(index: $0, code: .notGranted, message: String(repeating: "m", count: 100))
        }
        let numbered = try world.upload(persons, batch: 1, refusals: refusals, publishing: 0..<2)
        try await withFolder { folder in
            try await withFanOut(world, in: folder) { service in
                try await service.caughtUp(with: world)
                #expect(
                    try await service.fanOut.keptOutcome(of: 1, for: numbered.key, rows: .all, within: .zero) == nil)
                await #expect(throws: FanOutError.pending) {
                    try await service.fanOut.outcome(of: numbered, rows: .all, within: .zero)
                }
                // The content is a point of the owner's order.
                let rows = try await service.pull()
                let stream = world.stream(of: "abc").prefix(rows.count)
                #expect(rows.count > 0 && rows.count < 8)
                #expect(rows.head == stream.last?.timeStamp)
                #expect(rows.text == stream.map(world.json).joined(separator: ","))
            }
            try await withFanOut(world, in: folder) { service in
                // The new worker publishes the result again from its first piece.
                let first = world.log.records(of: world.ordered(), from: 0, maximumBytes: 1)[0]
                world.log.append(first.value, to: world.ordered())
                world.publishRest()
                try await service.caughtUp(with: world)
                try await expectModel(world, service)
                let outcome = try await service.fanOut.outcome(of: numbered, rows: .all, within: .zero)
                #expect(!outcome.isRepeat)
                #expect(outcome.results.map(\.index) == Array(0..<8))
                #expect(outcome.summary == BatchSummary(changeCount: 12, refusals: refusals))
                #expect(!service.events.hasDamage)
            }
        }
    }

    @Test func joinsTheOutcomeOfASplitResult() async throws {
        let world = World()
        world.pieceSize = 300
        let persons = (0..<8).map { Change.person("p\($0)", name: String(repeating: "x", count: 60), index: $0) }
        let refusals = (8..<12).map {
            Refusal(index: $0, code: .notGranted, message: String(repeating: "m", count: 100))
        }
        let unnumbered = try world.upload(persons, refusals: refusals)
        try await withFanOut(world) { service in
            try await service.caughtUp(with: world)
            let outcome = try await service.fanOut.outcome(of: unnumbered, rows: .all, within: .zero)
            #expect(outcome.results.map(\.index) == Array(0..<8))
            #expect(outcome.summary == BatchSummary(changeCount: 12, refusals: refusals))
        }
    }

    @Test func keepsServingBeforeARecordThatItCannotApply() async throws {
        let world = World()
        try world.upload([.person("p1")], batch: 1)
        world.log.append([0xFF, 0xFF], to: world.ordered())
        try await withFolder { folder in
            let (registry, failures) = (MetricRegistry(), PartitionFailures())
            let paused = registry.gauge(.fanOutPaused, [.partition: "0"])
            try await withFanOut(world, in: folder, failures: failures, metrics: FanOutMetrics(registry)) { service in
                await service.events.wait { $0.contains(where: \.isPaused) }
                try await expectModel(world, service)
                #expect(service.fanOut.isReady)
                #expect(!service.events.hasDamageOfAFile)
                // The process names it.
                #expect(
                    failures.reason?.contains("fanout of partition 0: a record of ordered breaks its contract") == true)
                #expect(paused.value == 1)
            }
            #expect(failures.reason == nil)
            #expect(paused.value == 0)
        }
    }

    @Test func resumesOnceWhatHasPausedItIsMended() async throws {
        let world = World()
        try world.upload([.person("p1")])
        let damaged = ChangeLogError(.corrupt, message: "a damaged page")
        world.log.fail(with: [damaged, damaged])
        try await withFolder { folder in
            let (registry, failures, clock) = (MetricRegistry(), PartitionFailures(), ManualClock())
            let paused = registry.gauge(.fanOutPaused, [.partition: "0"])
            try await withFanOut(
                world, in: folder, clock: clock, awaitReady: false, failures: failures, metrics: FanOutMetrics(registry)
            ) { service in
                // Each pause is longer than the one before.
                for seconds in [1, 2] {
                    await clock.sleeper(for: .seconds(seconds))
                    #expect(paused.value == 1)
                    #expect(failures.reason?.contains("a damaged page") == true)
                    clock.advance(by: .seconds(seconds))
                }
                try await service.caughtUp(with: world)
                try await expectModel(world, service)
                await service.events.wait { $0.contains(.resumed) }
                #expect(paused.value == 0)
                // At once.
                #expect(failures.reason == nil)
                // Reported once, since the cause is the same.
                #expect(service.events.events.count(where: \.isPaused) == 1)
            }
        }
    }

    @Test func refusesPiecesThatAreMissing() async throws {
        let world = World()
        world.pieceSize = 300
        let persons = (0..<8).map { Change.person("p\($0)", name: String(repeating: "x", count: 60), index: $0) }
        try world.upload(persons, publishing: 1..<3)
        try await withFanOut(world) { service in
            await service.events.wait { $0.contains(where: \.isRetry) }
            let empty = try await service.pull()
            #expect(empty == OwnerRows())
        }
        let other = World()
        other.pieceSize = 300
        try other.upload(persons, publishing: 0..<1)
        other.publishRest(without: 1)
        try await withFanOut(other) { service in
            await service.events.wait { $0.contains(where: \.isRetry) }
            let rows = try await service.pull()
            #expect(rows.count > 0 && rows.count < 4)
            #expect(rows.text == other.stream(of: "abc").prefix(rows.count).map(other.json).joined(separator: ","))
        }
    }

    @Test func refusesRecordsWithADifferentEpoch() async throws {
        let (world, other) = (World(), World())
        try other.upload([.person("p1")])
        let schema = world.schemas.newest!.schema
        let piece = OrderedPiece(
            epoch: "other", changesOffset: 0, schema: world.schemas.newest!.version.hash,
            upload: UploadReference(partition: 0, offset: 0), uploadPart: 0, logTime: 0, timeStamp: TimeStamp(100),
            owner: "abc", device: .first, batch: nil, verdict: .ordered,
            rows: other.stream(of: "abc").map { WrittenRow($0, before: .zero) })
        world.log.append(piece.encode(naming: schema), to: world.ordered())
        try await withFanOut(world) { service in
            await service.events.wait { $0.contains(where: \.isRetry) }
            let empty = try await service.pull()
            #expect(empty == OwnerRows())
        }
    }

    @Test func waitsForASchemaVersionThatItDoesNotKnowYet() async throws {
        let world = World()
        let known = KnownSchemas(world.schemas)
        try world.upload([.person("p1")])
        world.addSchema(
            Schema(tables: [
                Table(
                    name: "person",
                    columns: [
                        Column(name: "name", type: .text), Column(name: "age", type: .integer),
                        Column(name: "mail", type: .text, defaultValue: Array("\"none\"".utf8)),
                    ]), World.schema.tables[1],
            ]))
        try world.upload([.person("p2")])
        try await withFolder { folder in
            let registry = MetricRegistry()
            let paused = registry.gauge(.fanOutPaused, [.partition: "0"])
            try await withFanOut(world, in: folder, schemas: known, metrics: FanOutMetrics(registry)) { service in
                await service.events.wait { $0.contains { if case .waiting = $0 { true } else { false } } }
                #expect(paused.value == 1)
                #expect(try await service.pull().count == 1)
                known.learn(world.schemas)
                try await service.caughtUp(with: world)
                #expect(paused.value == 0)
                #expect(!service.events.hasRetry)
                try await expectModel(world, service)
                #expect(try await service.pull().text.contains(#""mail":"none""#))
            }
        }
    }

    @Test func retriesWhenTheLogFails() async throws {
        let world = World()
        try world.upload([.person("p1")])
        world.log.fail(with: [
            ChangeLogError(.inputOutput, message: "later", isRetriable: true),
            ChangeLogError(.other, message: "closed"),
        ])
        try await withFanOut(world) { service in
            try await service.caughtUp(with: world)
            try await expectModel(world, service)
            let retries = service.events.events.filter(\.isRetry)
            #expect(retries.count == 2)
            #expect(world.log.readerCount == 1)
        }
    }

    @Test func pullsAreExactDuringWrites() async throws {
        let world = World()
        for index in 0..<40 { try world.upload([.person("p\(index)", by: "k\(index % 12)")]) }
        try await withFanOut(world) { service in
            try await service.caughtUp(with: world)
            let fanOut = service.fanOut
            let readers = (0..<4).map { limit in
                Task {
                    // As a long poll: subscribes, pulls until drained, then waits for an advance.
                    let (moves, continuation) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
                    let subscription = fanOut.subscribe(to: ["abc"]) { _, _ in continuation.yield() }
                    defer { subscription.cancel() }
                    var client = StreamClient()
                    var signals = moves.makeAsyncIterator()
                    while true {
                        repeat { try await client.pull(fanOut, limit: limit + 2) } while client.hasMore
                        if client.rows["last"] != nil { return client }
                        await signals.next()
                    }
                }
            }
            var random = SeededRandom(seed: 7)
            for _ in 0..<150 {
                let device = Int.random(in: 0..<12, using: &random)
                let id = RowID(unchecked: "p\(Int.random(in: 0..<60, using: &random))")
                try world.upload([.person(id, by: "k\(device)")])
                await Task.yield()
            }
            try world.upload([.person("last")])
            try await service.caughtUp(with: world)
            let expected = Dictionary(
                uniqueKeysWithValues: world.stream(of: "abc").map { ($0.key.id.text, $0.timeStamp.rawValue) })
            for reader in readers {
                let client = try await reader.value
                #expect(client.rows == expected)
            }
        }
    }
}

extension [StreamReport] {
    /// What the reports say together of a stream.
    fileprivate func merged(_ partition: Int) -> StreamReport {
        filter { $0.partition == partition }.reduce(into: StreamReport(partition: partition)) { $0.merge($1) }
    }
}
