import ChangeLog
import Control
import MemoryChangeLog
import PartitionSupervision
import SyncModel
import SyncWire
import Synchronization
import TestClocks
import Testing

/// A process learns of the schema versions that come while it runs.
@Suite(.timeLimit(.minutes(5)))
struct FollowingTests {
    private let log = emptyLog()
    private let lines = Lines()
    private let clock = RecordingClock()
    private static let newer: [UInt8] = [0x08, 0x63]

    /// A history with the version `one`, and a process that follows it.
    private func followed(
        _ busy: BusyLog? = nil, prepare: @escaping @Sendable (SchemaHistory) async throws -> Void = { _ in }
    ) async throws -> (ControlTopic, Task<Void, any Error>) {
        let first = try await ControlTopic.open(in: log, proposed: proposed)
        try await first.register(one, in: log)
        let control = try await ControlTopic.open(in: log, proposed: proposed)
        let (topic, lines, clock) = (busy ?? BusyLog(log), lines, clock)
        return (
            control,
            Task { try await control.follow(topic, clock: clock, logger: lines.logger, prepare: prepare) }
        )
    }

    private func end(_ following: Task<Void, any Error>) async throws {
        following.cancel()
        try await following.value
        await log.close()
    }

    @Test func learnsOfAVersionThatAnotherProcessRegisters() async throws {
        let (control, following) = try await followed()
        let other = try await ControlTopic.open(in: log, proposed: proposed)
        try await other.register(two, in: log)
        try await control.known.wait { $0.schemas.entries.count == 2 }
        try await other.register(three, in: log)
        try await control.known.wait { $0.schemas.entries.count == 3 }
        #expect(control.schemas == other.schemas)
        try await end(following)
    }

    @Test func aVersionIsKnownOnceTheProcessIsReadyForIt() async throws {
        let (asked, ask) = AsyncStream.makeStream(of: SchemaHistory.self)
        let (answers, answer) = AsyncStream.makeStream(of: Void.self)
        let (control, following) = try await followed { schemas in
            ask.yield(schemas)
            for await _ in answers { break }
        }
        try await append([try entry(2, two)], to: log)
        let prepared = await asked.first { _ in true }
        #expect(prepared?.hashes == (try hashes([one, two])))
        #expect(control.schemas.entries.count == 1)
        answer.yield()
        try await control.known.wait { $0.schemas.entries.count == 2 }
        try await end(following)
    }

    @Test func decisionsAreKnownWhileTheProcessPreparesForAVersion() async throws {
        let (answers, answer) = AsyncStream.makeStream(of: Void.self)
        let (control, following) = try await followed { _ in
            for await _ in answers { break }
        }
        let device = Device(caller: SyncID(unchecked: "abc"), knowledgeID: KnowledgeID(unchecked: "k1"))
        try await append([try entry(2, two)], to: log)
        let position = SkippedRecord.Position(.changes, 1, offset: 7)
        try await append(
            [
                .skip(SkippedRecord(position, reason: "produced by hand", schemaVersions: 2)),
                .device(DeviceDecision(device, isRevoked: true)), try entry(3, three),
            ], to: log)
        try await control.known.wait { $0.skipped[.changes, 1, 7] != nil }
        _ = await lines.next(with: "A device is revoked")
        #expect(control.devices.contains(device))
        #expect(control.schemas.hashes == (try hashes([one])))
        // Versions are known in their order, each after its own preparation.
        answer.yield()
        try await control.known.wait { $0.schemas.entries.count == 2 }
        answer.yield()
        try await control.known.wait { $0.schemas.entries.count == 3 }
        #expect(control.schemas.hashes == (try hashes([one, two, three])))
        #expect(control.skipped.entries.count == 1)
        try await end(following)
    }

    @Test func triesAgainUntilTheProcessIsReady() async throws {
        struct NotYet: Error {}
        let attempts = Mutex(0)
        let (control, following) = try await followed { _ in
            let attempt = attempts.withLock { attempts in
                attempts += 1
                return attempts
            }
            if attempt < 4 { throw NotYet() }
        }
        try await append([try entry(2, two)], to: log)
        try await control.known.wait { $0.schemas.entries.count == 2 }
        #expect(attempts.withLock { $0 } == 4)
        #expect(clock.sleeps == [.milliseconds(100), .milliseconds(200), .milliseconds(400)])
        #expect(await lines.next(with: "Preparing for a schema version failed")?.contains("NotYet") == true)
        try await end(following)
    }

    @Test func triesAgainWhenTheLogFails() async throws {
        let busy = BusyLog(log)
        busy.failures.set(2)
        let (control, following) = try await followed(busy)
        try await append([try entry(2, two)], to: log)
        try await control.known.wait { $0.schemas.entries.count == 2 }
        #expect(clock.sleeps == [.milliseconds(100), .milliseconds(200)])
        #expect(await lines.next(with: "trying again")?.contains("no leader") == true)
        try await end(following)
    }

    @Test func endsWithAFailureThatWillNotPass() async throws {
        let (_, following) = try await followed()
        await log.close()
        let error = await #expect(throws: ChangeLogError.self) { try await following.value }
        #expect(error?.code == .closed)
    }

    @Test func theFirstRecordOfANumberCounts() async throws {
        let (control, following) = try await followed()
        try await append([try entry(2, two), try entry(2, three), try entry(2, two), try entry(3, three)], to: log)
        try await control.known.wait { $0.schemas.entries.count == 3 }
        #expect(control.schemas.hashes == (try hashes([one, two, three])))
        #expect(await lines.next(with: "registered a schema version at once")?.contains("version=2") == true)
        try await end(following)
    }

    @Test func learnsNothingBehindAVersionThatItCannotRead() async throws {
        let (control, following) = try await followed()
        try await append([(Array("schema/2/x".utf8), Self.newer)], to: log)
        let told = await lines.next(with: "this process learns no further schema versions")
        #expect(told?.contains("upgrade this process") == true)
        // It would take the place of the one that could not be read, or stand behind a gap: either would be wrong.
        try await append([try entry(2, two), try entry(3, three)], to: log)
        try await append([(Array("decision/1".utf8), Self.newer)], to: log)
        _ = await lines.next(with: "cannot be decoded and is skipped")
        #expect(control.schemas.hashes == (try hashes([one])))
        try await end(following)
    }

    @Test func goesOnBehindARecordOfAKindItDoesNotKnow() async throws {
        let (control, following) = try await followed()
        try await append([(Array("decision/1".utf8), Self.newer)], to: log)
        try await append([try entry(2, two)], to: log)
        try await control.known.wait { $0.schemas.entries.count == 2 }
        #expect(await lines.next(with: "cannot be decoded and is skipped")?.contains("control offset 2") == true)
        try await end(following)
    }

    @Test func endsWhenAnotherHistoryAppears() async throws {
        let (control, following) = try await followed()
        var other = proposed
        other.epoch = "e2"
        // The same again says nothing.
        try await append([.history(proposed), try entry(2, two)], to: log)
        try await control.known.wait { $0.schemas.entries.count == 2 }
        try await append([.history(other)], to: log)
        let error = await #expect(throws: ControlError.self) { try await following.value }
        #expect("\(try #require(error))".contains("control names two histories"))
        await log.close()
    }

    @Test func saysThatTheHistoryIsGoneAndGoesOnWhenItIsBack() async throws {
        let (control, place, looks, clock, following) = try await watched()
        #expect(await looks.next() == .some(.none))
        place.replace(emptyLog())
        await clock.sleepers(1)
        clock.advance(by: .seconds(1))
        let absence = await looks.next()
        #expect(absence.flatMap { $0 }?.contains("does not hold this history any more") == true)
        _ = await lines.next(with: "control does not hold this history")
        place.replace(log)
        try await append([try entry(2, two)], to: log)
        await clock.sleepers(1)
        clock.advance(by: .seconds(1))
        #expect(await looks.next() == .some(.none))
        try await control.known.wait { $0.schemas.entries.count == 2 }
        try await end(following)
    }

    @Test func endsWhenTheTopicIsThatOfAnotherHistory() async throws {
        let (_, place, looks, clock, following) = try await watched()
        #expect(await looks.next() == .some(.none))
        var other = proposed
        other.epoch = "e2"
        let second = emptyLog()
        // As many records as there were before.
        try await ControlTopic.open(in: second, proposed: other).register(one, in: second)
        place.replace(second)
        await clock.sleepers(1)
        clock.advance(by: .seconds(1))
        let error = await #expect(throws: ControlError.self) { try await following.value }
        #expect("\(try #require(error))".contains("control names history e2, this process began with e1"))
        await log.close()
        await second.close()
    }

    /// A process that looks at the topic once a second, wherever it is.
    private func watched() async throws -> (
        ControlTopic, ReplacedLog, Looks, ManualClock, Task<Void, any Error>
    ) {
        let first = try await ControlTopic.open(in: log, proposed: proposed)
        try await first.register(one, in: log)
        let control = try await ControlTopic.open(in: log, proposed: proposed)
        let (place, looks, clock, lines) = (ReplacedLog(log), Looks(), ManualClock(), lines)
        let following = Task {
            try await control.follow(
                place, checkInterval: .seconds(1), clock: clock, logger: lines.logger,
                checked: { looks.add($0.map { "\($0)" }) })
        }
        return (control, place, looks, clock, following)
    }

    @Test func whoeverWaitsForAVersionIsWokenByItOrByCancellation() async throws {
        let known = KnownSchemas()
        let waiting = (1...3).map { count in Task { try await known.wait { $0.schemas.entries.count >= count } } }
        var schemas = SchemaHistory()
        for (ordinal, tables) in [one, two].enumerated() {
            let schema = try Schema(declaring: tables)
            schemas.append(.init(version: SchemaVersion(ordinal: ordinal + 1, of: schema), schema: schema))
            known.learn(schemas)
            try await waiting[ordinal].value
        }
        // What is known stays.
        known.learn(SchemaHistory())
        #expect(known.now == schemas)
        waiting[2].cancel()
        await #expect(throws: CancellationError.self) { try await waiting[2].value }
    }
}
