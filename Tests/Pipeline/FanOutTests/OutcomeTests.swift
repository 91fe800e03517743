import FanOut
import FanOutLink
import SyncModel
import TestClocks
import Testing

@Suite(.timeLimit(.minutes(5))) struct OutcomeTests {
    private func part(_ offset: Int64, batch: Int64? = 1, owner: SyncID = "abc") -> PartReference {
        PartReference(
            upload: UploadReference(partition: 0, offset: offset), part: 0,
            key: DeviceKey(owner: owner, device: .first), batch: batch)
    }

    @Test func reachesWaitingAndLaterCallers() async throws {
        let world = World()
        try await withFanOut(world, clock: ManualClock()) { service in
            let (fanOut, waited) = (service.fanOut, part(0))
            async let first = fanOut.outcome(of: waited, rows: .all, within: .seconds(10))
            async let second = fanOut.outcome(of: waited, rows: .all, within: .seconds(10))
            let refusal = Refusal(index: 1, code: .notGranted, message: "no")
            let reference = try world.upload([.person("p1")], batch: 1, refusals: [refusal])
            #expect(reference == waited)
            let result = ChangeResult(
                index: 0, table: 0, id: "p1",
                status: .applied(timeStamp: TimeStamp(100), version: 1, knowledgeID: "k1"), heldFrom: .zero)
            let expected = PartOutcome(
                results: [result], summary: BatchSummary(changeCount: 2, refusals: [refusal]), head: TimeStamp(100))
            #expect(try await [first, second] == [expected, expected])
            #expect(try await fanOut.outcome(of: waited, rows: .all, within: .zero) == expected)
        }
    }

    @Test func throwsPendingWhenTheOutcomeIsNotInTime() async throws {
        let clock = ManualClock()
        try await withFanOut(World(), clock: clock) { service in
            let (fanOut, waited) = (service.fanOut, part(0))
            let outcome = Task { try await fanOut.outcome(of: waited, rows: .all, within: .seconds(10)) }
            await clock.sleepers(1)
            clock.advance(by: .seconds(9))
            let cancelled = Task { try await fanOut.outcome(of: waited, rows: .all, within: .seconds(10)) }
            await clock.sleepers(2)
            clock.advance(by: .seconds(1))
            await #expect(throws: FanOutError.pending) { try await outcome.value }
            cancelled.cancel()
            await #expect(throws: FanOutError.closed) { try await cancelled.value }
        }
    }

    @Test func limitsWaitingCallers() async throws {
        let clock = ManualClock()
        let oneWaiter = { (configuration: inout FanOutConfiguration) in configuration.maximumWaiters = 1 }
        try await withFanOut(World(), clock: clock, configure: oneWaiter) { service in
            let (fanOut, waited) = (service.fanOut, part(0))
            let first = Task { try await fanOut.outcome(of: waited, rows: .all, within: .seconds(10)) }
            await clock.sleepers(1)
            await #expect(throws: FanOutError.notReady("too many callers wait for outcomes")) {
                try await fanOut.outcome(of: waited, rows: .all, within: .seconds(10))
            }
            clock.advance(by: .seconds(10))
            await #expect(throws: FanOutError.pending) { try await first.value }
            // The capacity is free again.
            await #expect(throws: FanOutError.pending) {
                try await fanOut.outcome(of: waited, rows: .all, within: .zero)
            }
        }
    }

    @Test func showsTheCurrentRowsOfConflictsAndRefusals() async throws {
        let world = World()
        try world.upload([.person("p1", name: "A"), .person("p2", name: "B", index: 1)], batch: 1)
        let conflict = try world.upload(
            [
                .person("p1", name: "C", by: "k2", index: 0, base: .zero, ifBase: true),
                .person("gone", by: "k2", index: 1, base: TimeStamp(50)),
                .person("new", by: "k2", index: 2),
            ], device: .second, batch: 1, atomic: true)
        try world.upload([.person("p1", name: "D")], batch: 2)
        try await withFanOut(world) { service in
            try await service.caughtUp(with: world)
            let outcome = try await service.fanOut.outcome(of: conflict, rows: .all, within: .seconds(60))
            #expect(
                outcome.results.map(\.status) == [
                    .conflict, .refused(.rowGone, message: "base is 50, but there is no such row"),
                    .refused(
                        .batchAborted,
                        message: "another change of this owner in the atomic batch was refused or in conflict"),
                ])
            let row = try #require(world.stream(of: "abc").first { $0.key.id == "p1" })
            #expect(outcome.rows == [0: Array(world.json(row).utf8)])
            #expect(world.json(row).contains(#""name":"D""#))
        }
    }

    /// The rows are found from their locators, however many rows were written since.
    @Test func showsRowsThatWereWrittenManyTimesSince() async throws {
        let world = World()
        try world.upload((0..<3).map { .person("p\($0)", index: $0) }, batch: 1)
        try world.upload([.person("q", by: "k2")], device: .second, batch: 1)
        let conflict = try world.upload(
            (0..<3).map { .person("p\($0)", by: "k2", index: $0, base: .zero, ifBase: true) }
                + [.person("q", by: "k1", index: 3, base: .zero, ifBase: true)],
            device: Device(caller: "def", knowledgeID: "k3"), batch: 1)
        for batch in Int64(2)...26 {
            try world.upload((0..<1000).map { .person("more\(batch) \($0)", index: $0) }, batch: batch)
            if batch == 3 { try world.upload([.person("p1", name: "early", by: "k2")], device: .second, batch: 2) }
        }
        try world.upload([.person("p0", name: "late", by: "k2")], device: .second, batch: 3)
        try await withFanOut(world) { service in
            try await service.caughtUp(with: world)
            let stream = world.stream(of: "abc")
            let rows = try ["p0", "p1", "p2", "q"].map { id in
                Array(world.json(try #require(stream.first { $0.key.id.text == id })).utf8)
            }
            let expected = Dictionary(uniqueKeysWithValues: rows.enumerated().map { ($0, $1) })
            let outcome = try await service.fanOut.outcome(of: conflict, rows: .all, within: .seconds(60))
            #expect(outcome.results.map(\.status) == [.conflict, .conflict, .conflict, .conflict])
            #expect(outcome.rows == expected)
            let kept = try await service.fanOut.keptOutcome(of: 1, for: conflict.key, rows: .all, within: .zero)
            #expect(kept?.rows == expected)
        }
    }

    @Test func repeatsReceiveTheFirstOutcome() async throws {
        let world = World()
        let first = try world.upload([.person("p1")], batch: 1)
        let again = try world.upload([.person("p1", name: "other")], batch: 1)
        let mismatch = try world.upload([.person("p1")], batch: 1, content: 2)
        let otherHistory = try world.upload([.person("p1")], batch: 2, otherHistory: true)
        try await withFanOut(world) { service in
            try await service.caughtUp(with: world)
            let outcome = try await service.fanOut.outcome(of: first, rows: .all, within: .seconds(60))
            #expect(!outcome.isRepeat)
            var repeated = try await service.fanOut.outcome(of: again, rows: .all, within: .seconds(60))
            #expect(repeated.isRepeat)
            repeated.isRepeat = false
            #expect(repeated == outcome)
            let refusals = [mismatch, otherHistory]
            var found: [BatchRefusal?] = []
            for part in refusals {
                found.append(try await service.fanOut.outcome(of: part, rows: .all, within: .seconds(60)).refusal)
            }
            #expect(found == [.batchMismatch, .historyChanged])
            let kept = try await service.fanOut.keptOutcome(of: 1, for: first.key, rows: .all, within: .zero)
            #expect(kept?.results == outcome.results && kept?.isRepeat == true)
            #expect(try await service.fanOut.keptOutcome(of: 2, for: first.key, rows: .all, within: .zero) == nil)
        }
    }

    /// An outcome is in the file a moment before its stream's heads are published, and a pull must not be from before it.
    @Test func theHeadCoversTheResultsFromTheFirstMomentOn() async throws {
        let world = World()
        let key = DeviceKey(owner: "abc", device: .first)
        try await withFanOut(world) { service in
            try await service.caughtUp(with: world)
            for batch in Int64(1)...500 {
                try world.upload([.person("p\(batch)"), .person("q")], batch: batch)
                let head = world.head(of: "abc")
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for _ in 0..<4 {
                        group.addTask {
                            var found: PartOutcome?
                            while found == nil {
                                found = try await service.fanOut.keptOutcome(
                                    of: batch, for: key, rows: nil, within: .zero)
                            }
                            #expect(found?.results.count == 2 && found?.head == head, "batch \(batch)")
                        }
                    }
                    try await group.waitForAll()
                }
            }
        }
    }

    @Test func keepsTheNewestSixteenOfEachDeviceAndOwner() async throws {
        let world = World()
        for batch in 1...20 {
            try world.upload([.person("p\(batch)")], batch: Int64(batch))
            try world.upload([.person("p\(batch)")], owner: "def", batch: Int64(batch) * 10)
            if batch == 1 { try world.upload([.person("q", by: "k2")], device: .second, batch: 1) }
        }
        let expired = try world.upload([.person("p1")], batch: 4)
        try await withFolder { folder in
            // From the log, and from the file after a restart.
            for _ in 0..<2 {
                try await withFanOut(world, in: folder) { service in
                    try await service.caughtUp(with: world)
                    for batch in Int64(1)...20 {
                        let abc = try await service.fanOut.keptOutcome(
                            of: batch, for: DeviceKey(owner: "abc", device: .first), rows: .all, within: .zero)
                        let def = try await service.fanOut.keptOutcome(
                            of: batch * 10, for: DeviceKey(owner: "def", device: .first), rows: .all, within: .zero)
                        #expect(abc?.results.first?.id.text == (batch > 4 ? "p\(batch)" : nil))
                        #expect(def?.results.first?.id.text == (batch > 4 ? "p\(batch)" : nil))
                    }
                    let other = try await service.fanOut.keptOutcome(
                        of: 1, for: DeviceKey(owner: "abc", device: .second), rows: .all, within: .zero)
                    #expect(other?.results.first?.id == "q")
                }
            }
            try await withFanOut(world) { service in
                try await service.caughtUp(with: world)
                #expect(
                    try await service.fanOut.outcome(of: expired, rows: .all, within: .zero).refusal == .outcomeExpired)
            }
        }
    }

    @Test func findsNumberedBatchesInTheFileWhenTheyAreNoLongerRecent() async throws {
        let world = World()
        let numbered = try world.upload([.person("p1")], batch: 1)
        let unnumbered = try world.upload([.person("p2")])
        let again = try world.upload([.person("p1")], batch: 1)
        try world.upload([.person("p3")], batch: 2)
        let oneResult = { (configuration: inout FanOutConfiguration) in configuration.recentResults = 1 }
        try await withFanOut(world, clock: ManualClock(), configure: oneResult) { service in
            try await service.caughtUp(with: world)
            let outcome = try await service.fanOut.outcome(of: numbered, rows: .all, within: .seconds(1))
            #expect(!outcome.isRepeat && outcome.results.map(\.id) == ["p1"])
            // Whether this was a repeat or had different content is no longer known: the device retries. The clock does
            // not advance.
            for part in [unnumbered, again] {
                await #expect(throws: FanOutError.pending) {
                    try await service.fanOut.outcome(of: part, rows: .all, within: .seconds(1))
                }
            }
        }
    }

    @Test func waitsForStoredOutcomes() async throws {
        let world = World()
        let clock = ManualClock()
        try await withFanOut(world, clock: clock) { service in
            let (fanOut, key) = (service.fanOut, DeviceKey(owner: "abc", device: .first))
            let kept = Task { try await fanOut.keptOutcome(of: 1, for: key, rows: .all, within: .seconds(10)) }
            await clock.sleepers(1)
            try world.upload([.person("p1")], batch: 1)
            #expect(try await kept.value?.results.map(\.id) == ["p1"])
            let never = Task { try await fanOut.keptOutcome(of: 2, for: key, rows: .all, within: .seconds(10)) }
            await clock.sleepers(1)
            clock.advance(by: .seconds(10))
            #expect(try await never.value == nil)
        }
    }

    @Test func stopEndsWaits() async throws {
        let clock = ManualClock()
        try await withFanOut(World(), clock: clock) { service in
            let (fanOut, waited) = (service.fanOut, part(0))
            let outcome = Task { try await fanOut.outcome(of: waited, rows: .all, within: .seconds(10)) }
            await clock.sleepers(1)
            await fanOut.stop()
            await #expect(throws: FanOutError.closed) { try await outcome.value }
            await #expect(throws: FanOutError.closed) {
                try await fanOut.outcome(of: waited, rows: .all, within: .seconds(10))
            }
        }
    }
}
