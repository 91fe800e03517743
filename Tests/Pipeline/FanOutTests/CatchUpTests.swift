import ChangeLog
import FanOut
import FanOutLink
import SyncModel
import TestClocks
import Testing

/// Vectors that are above the stream (I7).
@Suite(.timeLimit(.minutes(5))) struct CatchUpTests {
    /// A stream that was opened before the log had anything, and whose first reader fails: it is served without what came since,
    /// until the clock advances.
    private func withStandingStream(
        _ world: World, missing uploads: () throws -> Void, _ body: (Service, ManualClock) async throws -> Void
    ) async throws {
        let clock = ManualClock()
        world.log.fail(with: [ChangeLogError(.inputOutput, message: "standing", isRetriable: true)])
        let configure = { (configuration: inout FanOutConfiguration) in
            configuration.retryDelay = .seconds(100)...(.seconds(100))
        }
        try await withFanOut(world, clock: clock, configure: configure) { service in
            await clock.sleepers(1)
            try uploads()
            try await body(service, clock)
        }
    }

    @Test func waitsWhenAnotherFanOutWasAhead() async throws {
        let world = World()
        try await withStandingStream(world) {
            try world.upload([.person("p1")])
            try world.upload([.person("p2")])
        } _: { service, clock in
            let knowledge = OwnerKnowledge(entries: ["k1": TimeStamp(100)])
            let request = OwnerPull(owner: "abc", knowledge: knowledge)
            #expect(service.fanOut.idlePage(request) == nil)
            async let rows = service.pull(knowledge, within: .seconds(1000))
            await clock.sleepers(2)
            clock.advance(by: .seconds(100))
            let answer = try await rows
            #expect(answer.text == world.json(world.stream(of: "abc")[1]))
        }
    }

    /// After an hour away it would else be asked, and be late, for what other fan-outs have.
    @Test func servesOnceItHasWhatOrderedHadWhenItWasOpened() async throws {
        let world = World()
        try world.upload([.person("p1")])
        let clock = ManualClock()
        world.log.fail(with: [ChangeLogError(.inputOutput, message: "standing", isRetriable: true)])
        let configure = { (configuration: inout FanOutConfiguration) in
            configuration.retryDelay = .seconds(100)...(.seconds(100))
        }
        try await withFolder { folder in
            try await withFanOut(world, in: folder, clock: clock, awaitReady: false, configure: configure) { service in
                await clock.sleepers(1)
                let behind = FanOutError.notReady("the stream has reached offset 0 of 1 of ordered")
                await #expect(throws: behind) { _ = try await service.pull() }
                #expect(service.fanOut.idlePage(OwnerPull(owner: "abc", knowledge: OwnerKnowledge())) == nil)
                // What comes later is not waited for.
                try world.upload([.person("p2")])
                clock.advance(by: .seconds(100))
                try await service.caughtUp(with: world)
                #expect(try await service.pull().count == 2)
            }
        }
    }

    private static let noLeader = ChangeLogError(.other, message: "no leader", isRetriable: true)

    @Test func waitsForTheEndOfOrderedWhileItCannotBeRead() async throws {
        let world = World()
        let clock = ManualClock()
        let configure = { (configuration: inout FanOutConfiguration) in
            configuration.retryDelay = .seconds(10)...(.seconds(10))
        }
        try await withFolder { folder in
            try await withFanOut(world, in: folder) { _ in }
            try world.upload([.person("p1")])
            world.log.failRanges(with: [Self.noLeader])
            world.log.fail(with: [Self.noLeader])
            try await withFanOut(world, in: folder, clock: clock, awaitReady: false, configure: configure) { service in
                await clock.sleeper(for: .seconds(10))
                await #expect(throws: FanOutError.notReady("the stream is being opened")) {
                    _ = try await service.pull()
                }
                clock.advance(by: .seconds(10))
                await clock.sleeper(for: .seconds(10))
                await #expect(throws: FanOutError.notReady("the stream has reached offset 0 of 1 of ordered")) {
                    _ = try await service.pull()
                }
                clock.advance(by: .seconds(10))
                try await service.caughtUp(with: world)
                #expect(try await service.pull().count == 1)
            }
        }
    }

    @Test func servesWhatItHasWhereTheEndOfOrderedCannotBeReadForLong() async throws {
        let world = World()
        try world.upload([.person("p1")])
        try await withFolder { folder in
            try await withFanOut(world, in: folder) { try await $0.caughtUp(with: world) }
            try world.upload([.person("p2")])
            let clock = ManualClock()
            world.log.failRanges(with: Array(repeating: Self.noLeader, count: 100))
            world.log.fail(with: Array(repeating: Self.noLeader, count: 100))
            let configure = { (configuration: inout FanOutConfiguration) in
                configuration.retryDelay = .seconds(10)...(.seconds(10))
            }
            try await withFanOut(world, in: folder, clock: clock, awaitReady: false, configure: configure) { service in
                await clock.sleeper(for: .seconds(30))
                #expect(!service.fanOut.isReady)
                clock.advance(by: .seconds(30))
                await service.events.ready(1)
                let rows = try await service.pull()
                #expect(rows.count == 1)
            }
        }
    }

    /// After a kill, ordering appends its last results once more; a stream that has them all finds nothing new there.
    @Test func servesAfterAnEndOfRepeatedResults() async throws {
        let world = World()
        for name in ["p1", "p2"] { try world.upload([.person(RowID(unchecked: name))]) }
        try await withFolder { folder in
            try await withFanOut(world, in: folder) { try await $0.caughtUp(with: world) }
            for record in world.log.records(of: world.ordered(), from: 0, maximumBytes: .max) {
                world.log.append(record.value, to: world.ordered(), time: record.time)
            }
            // Returns when the stream is reported as ready.
            let rows = try await withFanOut(world, in: folder) { try await $0.pull() }
            #expect(rows.count == 2)
        }
    }

    @Test func waitsForTheStreamThatTheOutcomeIsFrom() async throws {
        let world = World()
        try await withStandingStream(world) {
            try world.upload([.person("p1")])
            try world.upload([.person("p2")])
        } _: { behind, clock in
            // The device's vector is empty, so nothing else says that another stream was ahead.
            let request = PagePull(
                owners: [OwnerPull(owner: "abc", knowledge: OwnerKnowledge(), leastHead: world.head(of: "abc"))],
                limit: 10, maximumBytes: 1 << 20)
            #expect(behind.fanOut.idlePage(request.owners[0]) == nil)
            async let pages = behind.fanOut.pull(request, within: .seconds(1000))
            await clock.sleepers(2)
            clock.advance(by: .seconds(100))
            guard case .rows(let rows)? = try await pages.first?.content else {
                Issue.record("a page of rows")
                return
            }
            #expect(rows.count == 2 && !rows.hasMore && rows.head == world.head(of: "abc"))
        }
    }

    @Test func waitsForTheHeadOfTheLastCutPage() async throws {
        let world = World()
        // Two rows of one device, and a third; then the first is written again, unknown to the fan-out that serves the
        // next page.
        world.writesTables = true
        try world.upload([.person("p1")])
        try world.upload([.person("p2")])
        try world.upload([.person("p3", by: "k2")], device: .second)
        world.writesTables = false
        try await withStandingStream(world) {
            try world.upload([.person("p1", name: "B")])
        } _: { behind, clock in
            let (knowledge, rest) = try await withFanOut(world) { ahead in
                try await ahead.caughtUp(with: world)
                let cut = try await ahead.pull(limit: 1)
                #expect(cut.text == world.json(world.stream(of: "abc")[0]) && cut.hasMore)
                #expect(cut.head == TimeStamp(103))
                let knowledge = OwnerKnowledge(entries: cut.knowledge, cutFrom: cut.cutFrom(known: nil))
                return (knowledge, try await ahead.pull(knowledge).text)
            }
            // Without the head, the fan-out that is behind would count the first row's old version as held.
            let unnamed = try await behind.pull(OwnerKnowledge(entries: knowledge.entries))
            #expect(unnamed.text == world.json(world.stream(of: "abc")[1]) && !unnamed.hasMore)
            #expect(behind.fanOut.idlePage(OwnerPull(owner: "abc", knowledge: knowledge)) == nil)
            async let rows = behind.pull(knowledge, within: .seconds(1000))
            await clock.sleepers(2)
            clock.advance(by: .seconds(100))
            let answer = try await rows
            #expect(answer.text == rest && answer.count == 2 && !answer.hasMore)
            #expect(answer.cutFrom(known: knowledge.cutFrom) == nil)
        }
    }

    @Test func reportsHistoryChangedWhenTheLastCutPageIsAboveTheEndOfTheLog() async throws {
        let world = World()
        try world.upload([.person("p1")])
        try await withFanOut(world) { service in
            try await service.caughtUp(with: world)
            let knowledge = OwnerKnowledge(entries: ["k1": TimeStamp(100)], cutFrom: TimeStamp(101))
            let request = PagePull(
                owners: [OwnerPull(owner: "abc", knowledge: knowledge)], limit: 1, maximumBytes: 1)
            #expect(service.fanOut.idlePage(request.owners[0]) == nil)
            let pages = try await service.fanOut.pull(request, within: .seconds(60))
            #expect(pages == [OwnerPage(owner: "abc", content: .historyChanged)])
        }
    }

    @Test func throwsNotReadyWhenTheStreamIsNotInTime() async throws {
        let world = World()
        try await withStandingStream(world) {
            try world.upload([.person("p1")])
        } _: { service, clock in
            let rows = Task { try await service.pull(OwnerKnowledge(floor: TimeStamp(100)), within: .seconds(10)) }
            await clock.sleepers(2)
            clock.advance(by: .seconds(10))
            await #expect(throws: FanOutError.notReady("the stream is behind the device's knowledge vector")) {
                _ = try await rows.value
            }
        }
    }

    @Test func reportsHistoryChangedWhenTheVectorIsAboveTheEndOfTheLog() async throws {
        let world = World()
        try world.upload([.person("p1")])
        try world.upload([.person("q1")], owner: "def")
        try await withFanOut(world) { service in
            try await service.caughtUp(with: world)
            // Above this owner's stream, though not above another's in the same partition.
            let owners = [
                OwnerPull(owner: "abc", knowledge: OwnerKnowledge(entries: ["k1": TimeStamp(101)])),
                OwnerPull(owner: "def", knowledge: OwnerKnowledge()),
            ]
            let pages = try await service.fanOut.pull(
                PagePull(owners: owners, limit: 10, maximumBytes: 1000), within: .seconds(60))
            #expect(pages.map(\.owner) == ["abc", "def"])
            #expect(pages[0].content == .historyChanged)
            guard case .rows(let rows) = pages[1].content else { throw UnexpectedContent(pages: pages) }
            #expect(rows.count == 1)
            let unknown = try await service.fanOut.pull(
                PagePull(
                    owners: [OwnerPull(owner: "nobody", knowledge: OwnerKnowledge(floor: TimeStamp(1)))], limit: 1,
                    maximumBytes: 1), within: .seconds(60))
            #expect(unknown == [OwnerPage(owner: "nobody", content: .historyChanged)])
        }
    }

    @Test func cancellationAndStopEndWaits() async throws {
        let world = World()
        try await withStandingStream(world) {
            try world.upload([.person("p1")])
        } _: { service, clock in
            let fanOut = service.fanOut
            let request = PagePull(
                owners: [OwnerPull(owner: "abc", knowledge: OwnerKnowledge(floor: TimeStamp(100)))], limit: 1,
                maximumBytes: 1)
            let cancelled = Task { try await fanOut.pull(request, within: .seconds(1000)) }
            await clock.sleepers(2)
            cancelled.cancel()
            await #expect(throws: FanOutError.closed) { try await cancelled.value }
            let stopped = Task { try await fanOut.pull(request, within: .seconds(1000)) }
            await clock.sleepers(2)
            await fanOut.stop()
            await #expect(throws: FanOutError.closed) { try await stopped.value }
        }
    }
}
