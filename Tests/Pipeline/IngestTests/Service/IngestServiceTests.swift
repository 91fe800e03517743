import ChangeLog
import Configuration
import Ingest
import Metrics
import PartitionSupervision
import SyncModel
import SyncWire
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(5))) struct IngestServiceTests {
    private let log = TestLog()
    private let clock = TestClock()
    private let events = Events()

    private func service(
        clock: TestClock? = nil, stepBytes: Int = 1, schemas: KnownSchemas = KnownSchemas(Fixture.schemas)
    ) -> Task<Void, any Error> {
        let service = IngestService(
            StageContext(log: log, history: Fixture.history, schemas: schemas, clock: clock ?? self.clock),
            configuration: IngestConfiguration().with(\.stepBytes, stepBytes), report: events.add)
        return Task { try await service.run() }
    }

    private func upload(_ id: Int) -> Upload { Upload([#"{"table":"note","id":"\#(id)","syncId":"bob"}"#]) }

    /// The ids of Bob's rows in the order of `changes`.
    private func written() throws -> [String] {
        try log.records(of: .changes).map { try ChangePart(decoding: $0.value) }.flatMap(\.changes).map(\.id.text)
    }

    private static let outage = ChangeLogError(.inputOutput, message: "no leader", isRetriable: true)

    @Test func appendsTheRecordsOfEachBatchAndCommits() async throws {
        for id in 0..<5 { log.upload(upload(id)) }
        log.upload(Upload("[17]").with(\.caller, "eve"))
        let running = service()
        await log.commits.reach(6)
        running.cancel()
        try await running.value
        #expect(try written() == ["0", "1", "2", "3", "4"])
        #expect(log.records(of: .changes).count == 11 && log.records(of: .deadLetters).count == 1)
        #expect(log.committed(2) == 5 && log.committed(0) == 1 && log.committed(1) == nil)
        // A producer and a reader for each partition.
        #expect(log.producersMade.count == 4 && log.closed.count == 8)
    }

    @Test func anOwnersDeadLettersStayWithinItsQuota() async throws {
        // Each of these causes a dead letter of about 100 bytes.
        for _ in 0..<100 { log.upload(Upload("[17]")) }
        log.upload(Upload("[17]").with(\.caller, "eve"))
        log.upload(Upload("{}"))
        let registry = MetricRegistry()
        let service = IngestService(
            StageContext(log: log, history: Fixture.history, schemas: KnownSchemas(Fixture.schemas), clock: clock),
            configuration: IngestConfiguration().with(\.stepBytes, 1).with(\.deadLetterBytes, 1000),
            metrics: IngestMetrics(registry, partitions: 4), report: events.add)
        let running = Task { try await service.run() }
        await log.commits.reach(102)
        running.cancel()
        try await running.value
        let letters = log.records(of: .deadLetters)
        #expect(letters.count { $0.key == Array("eve".utf8) } == 1)
        let anns = letters.filter { $0.key == Array("ann".utf8) }
        let refused = try anns.map { try DeadLetter(decoding: $0.value) }.count { $0.subject.isOfChanges }
        #expect((5...15).contains(refused) && anns.count == refused + 1)
        #expect(registry.counter(.ingestDroppedDeadLetters).value == 100 - refused)
        // Nothing else is missing: each batch has its part 0.
        #expect(log.records(of: .changes).count == 101)
    }

    @Test func commitsNothingThatTheLogHasNotAcknowledged() async throws {
        log.hold()
        log.upload(upload(0))
        let running = service()
        await log.enqueues.reach(1)
        log.upload(upload(1))
        await log.enqueues.reach(2)
        #expect(log.commits.count == 0 && log.committed(2) == nil)
        log.releaseOne()
        await log.commits.reach(1)
        #expect(log.committed(2) == 1)
        log.release()
        await log.commits.reach(2)
        #expect(log.committed(2) == 2)
        running.cancel()
        try await running.value
    }

    @Test func keepsTwoStepsBeforeTheLogAtMost() async throws {
        log.hold()
        for id in 0..<8 { log.upload(upload(id)) }
        let running = service()
        for step in 1...6 {
            await log.enqueues.reach(step + 1)
            log.releaseOne()
        }
        log.release()
        await log.commits.reach(8)
        #expect(log.change { $0.mostPending } == 2)
        #expect(try written() == (0..<8).map(String.init))
        running.cancel()
        try await running.value
    }

    @Test func takesManyRecordsIntoOneStep() async throws {
        for id in 0..<8 { log.upload(upload(id)) }
        let running = service(stepBytes: 1 << 20)
        await log.commits.reach(1)
        #expect(log.committed(2) == 8 && log.enqueues.count == 1)
        running.cancel()
        try await running.value
    }

    @Test func startsAgainFromTheCommittedOffsetWithAnotherProducer() async throws {
        for id in 0..<4 { log.upload(upload(id)) }
        log.change { $0.faults = [nil, Self.outage] }
        let running = service()
        await log.commits.reach(4)
        running.cancel()
        try await running.value
        // Nothing is missing, nothing overtook the failed one.
        #expect(try written() == ["0", "1", "2", "3"])
        #expect(log.committed(2) == 4 && log.producersMade.count == 5)
        #expect(clock.slept == [.milliseconds(100)] && events.restarts == [Self.outage])
        #expect(log.closed.count == 10)
    }

    @Test func waitsLongerAfterEachFailureInARow() async throws {
        for id in 0..<2 { log.upload(upload(id)) }
        log.change { $0.faults = Array(repeating: Self.outage, count: 9) + [nil, Self.outage] }
        let running = service()
        await log.commits.reach(2)
        running.cancel()
        try await running.value
        #expect(
            clock.slept == [
                .milliseconds(100), .milliseconds(200), .milliseconds(400), .milliseconds(800), .milliseconds(1600),
                .milliseconds(3200), .milliseconds(6400), .seconds(10), .seconds(10), .milliseconds(100),
            ])
        #expect(try written() == ["0", "1"])
    }

    @Test func startsAgainWhenACommitFailed() async throws {
        log.change { $0.commitFaults = [Self.outage] }
        log.upload(upload(0))
        let running = service()
        await log.commits.reach(2)
        running.cancel()
        try await running.value
        // The log had it already; ordering drops the repetition.
        #expect(try written() == ["0", "0"] && log.committed(2) == 1)
    }

    @Test func repeatsTheSameRecordsFromTheCommittedOffset() async throws {
        for id in 0..<3 { log.upload(upload(id)) }
        log.upload(Upload("[1]"))
        log.change { $0.forgetsCommits = true }
        let first = service()
        await log.commits.reach(4)
        first.cancel()
        try await first.value
        log.change { $0.forgetsCommits = false }
        let second = service()
        await log.commits.reach(8)
        second.cancel()
        try await second.value
        for topic in [Topic.changes, .deadLetters] {
            for partition in 0..<4 {
                let records = log.change { $0.records[TopicPartition(topic, partition)] ?? [] }.map(\.value)
                #expect(records.prefix(records.count / 2) == records.suffix(records.count / 2))
            }
        }
        #expect(try written() == ["0", "1", "2", "0", "1", "2"])
    }

    @Test func settlesWhatTheLogHasBeforeItWhenToldToEnd() async throws {
        log.hold()
        log.upload(upload(0))
        let running = service()
        await log.enqueues.reach(1)
        running.cancel()
        log.release()
        try await running.value
        #expect(try written() == ["0"] && log.committed(2) == 1)
    }

    @Test func reportsWhatItCouldNotCommitWhenToldToEnd() async throws {
        log.hold()
        log.upload(upload(0))
        let running = service()
        await log.enqueues.reach(1)
        running.cancel()
        log.change { $0.faults = [Self.outage] }
        log.release()
        try await running.value
        #expect(log.committed(2) == nil && events.uncommitted == [2] && clock.slept.isEmpty)
    }

    @Test func endsWhileItWaitsToStartAgain() async throws {
        let clock = TestClock(isStuck: true)
        log.upload(upload(0))
        log.change { $0.faults = [Self.outage] }
        let running = service(clock: clock)
        await clock.sleeps.reach(1)
        running.cancel()
        try await running.value
        #expect(log.committed(2) == nil)
    }

    @Test func pausesAPartitionWhoseLogIsDamagedAndResumesOnceItIsMended() async throws {
        let broken = ChangeLogError(.corrupt, message: "damaged")
        for id in 0..<3 { log.upload(upload(id)) }
        log.change { $0.faults = [nil, broken, broken] }
        let running = service()
        await log.commits.reach(3)
        running.cancel()
        try await running.value
        #expect(log.committed(2) == 3 && clock.slept == [.seconds(1), .seconds(2)])
        #expect(try written() == ["0", "1", "2"])
        // The cause is reported once, and the end of the pause.
        #expect(events.paused.compactMap { $0 as? ChangeLogError } == [broken] && events.resumptions == 1)
        #expect(log.closed.count == 2 * log.producersMade.count)
    }

    @Test func pausesAtARecordOfAnUnknownSchemaBehindAllBeforeItWhileOthersGoOn() async throws {
        let unknown = String(repeating: "0", count: 32)
        for id in 0..<2 { log.upload(upload(id)) }
        log.upload(upload(2).with(\.schema, unknown))
        log.upload(upload(3))
        let error = IngestError.unknownSchema(UploadReference(partition: 2, offset: 2), unknown)
        let running = service(stepBytes: 1 << 20)
        await log.commits.reach(1)
        await events.pauses.reach(1)
        #expect(events.paused.compactMap { $0 as? IngestError } == [error])
        #expect(try written() == ["0", "1"] && log.committed(2) == 2)
        log.upload(upload(4))
        log.upload(upload(5).with(\.caller, "eve"))
        await log.commits.reach(2)
        #expect(log.committed(0) == 1 && log.committed(2) == 2)
        running.cancel()
        try await running.value
        #expect(log.closed.count == 2 * log.producersMade.count)
    }

    @Test func goesOnWhenTheSchemaVersionIsKnownWithoutWaitingForTime() async throws {
        let known = KnownSchemas(Fixture.firstSchema)
        log.upload(upload(0).with(\.schema, Fixture.oldest))
        log.upload(upload(1))
        log.upload(upload(2).with(\.schema, Fixture.oldest))
        let running = service(stepBytes: 1 << 20, schemas: known)
        await events.pauses.reach(1)
        #expect(try written() == ["0"])
        // The member works on what it is given meanwhile.
        log.upload(upload(3).with(\.schema, Fixture.oldest).with(\.caller, "eve"))
        await log.commits.reach(2)
        #expect(log.committed(0) == 1 && log.committed(2) == 1)
        known.learn(Fixture.schemas)
        await log.commits.reach(3)
        #expect(try written().sorted() == ["0", "1", "2", "3"])
        #expect(log.committed(2) == 3 && events.resumptions == 1 && clock.slept.isEmpty)
        running.cancel()
        try await running.value
        #expect(log.closed.count == 2 * log.producersMade.count)
    }

    @Test func goesOnWhenTheRecordIsLeftOutWithoutWaitingForTime() async throws {
        let known = KnownSchemas(Fixture.schemas)
        log.upload(upload(0))
        log.upload(upload(1).with(\.schema, String(repeating: "0", count: 32)))
        log.upload(upload(2))
        let running = service(stepBytes: 1 << 20, schemas: known)
        await events.pauses.reach(1)
        // A decision about another partition, and about another record.
        var skipped = SkippedRecords()
        for position in [SkippedRecord.Position(.uploads, 1, offset: 1), .init(.uploads, 2, offset: 7)] {
            skipped.append(SkippedRecord(position, reason: "other", schemaVersions: 2), at: 1)
        }
        known.learn(Fixture.schemas, leavingOut: skipped)
        skipped.append(
            SkippedRecord(.init(.uploads, 2, offset: 1), reason: "edge 7 was reverted", schemaVersions: 2), at: 2)
        known.learn(Fixture.schemas, leavingOut: skipped)
        await log.commits.reach(2)
        running.cancel()
        try await running.value
        #expect(try written() == ["0", "2"] && log.committed(2) == 3)
        #expect(events.paused.count == 1 && events.resumptions == 1 && clock.slept.isEmpty)
        // The whole record is kept.
        let letters = try log.records(of: .deadLetters).map { try DeadLetter(decoding: $0.value) }
        let refusal = RecordRefusal(.skipped, "edge 7 was reverted")
        let value = log.change { $0.records[TopicPartition(.uploads, 2)]?[1].value ?? [] }
        #expect(letters.map(\.subject) == [.record(refusal, value: value)])
    }

    @Test func aRecordThatNeedsNewerRulesIsLeftOutAtTheNextAttempt() async throws {
        var skipped = SkippedRecords()
        skipped.append(SkippedRecord(.init(.uploads, 2, offset: 0), reason: "reverted", schemaVersions: 2), at: 1)
        log.upload(upload(0).with(\.rules, 99))
        log.upload(upload(1))
        let running = service(schemas: KnownSchemas(Fixture.schemas, leavingOut: skipped))
        await log.commits.reach(2)
        running.cancel()
        try await running.value
        #expect(try written() == ["1"])
        #expect(log.records(of: .deadLetters).count == 1)
    }

    @Test func staysPausedAtARecordThatNeedsNewerRules() async throws {
        let known = KnownSchemas(Fixture.firstSchema)
        log.upload(upload(0).with(\.schema, Fixture.newest).with(\.rules, 99))
        log.upload(upload(1).with(\.schema, Fixture.newest).with(\.caller, "eve"))
        let running = service(clock: TestClock(isStuck: true), schemas: known)
        await events.pauses.reach(2)
        known.learn(Fixture.schemas)
        await log.commits.reach(1)
        #expect(log.committed(0) == 1 && log.committed(2) == nil)
        #expect(
            events.paused.compactMap { $0 as? IngestError }
                == [.unknownRules(UploadReference(partition: 2, offset: 0), 99)])
        running.cancel()
        try await running.value
    }

    @Test func startsAtTheEarliestRecordWithoutACommittedOffset() async throws {
        log.change { $0.starts[TopicPartition(.uploads, 2)] = 5 }
        log.upload(upload(0))
        let running = service()
        await log.commits.reach(1)
        #expect(log.committed(2) == 6)
        running.cancel()
        try await running.value
    }

    @Test(arguments: [4, 7] as [Int64])
    func refusesACommittedOffsetThatTheLogDoesNotHold(offset: Int64) async throws {
        log.change { state in
            state.starts[TopicPartition(.uploads, 2)] = 5
            state.committed[2] = offset
        }
        log.upload(upload(0))
        let error = IngestError.positionOutOfRange(
            UploadReference(partition: 2, offset: offset), LogRange(start: 5, end: 6))
        let running = service(clock: TestClock(isStuck: true))
        await events.pauses.reach(1)
        // Others continue.
        log.upload(upload(1).with(\.caller, "eve"))
        await log.commits.reach(1)
        #expect(events.paused.compactMap { $0 as? IngestError } == [error] && log.committed(2) == offset)
        running.cancel()
        try await running.value
    }

    /// The log forgot with the topic what was committed, and the new one gives the same offsets again.
    @Test func refusesATopicThatLacksWhatCameToChanges() async throws {
        for id in 0..<3 { log.upload(upload(id)) }
        let first = service()
        await log.commits.reach(3)
        first.cancel()
        try await first.value
        log.change { state in
            state.committed = [:]
            state.records[TopicPartition(.uploads, 2)] = []
        }
        let held = log.records(of: .changes).count
        let error = IngestError.uploadsLost(UploadReference(partition: 2, offset: 2), LogRange(start: 0, end: 0))
        let lost = service(clock: TestClock(isStuck: true))
        await events.pauses.reach(1)
        lost.cancel()
        try await lost.value
        log.upload(upload(3))
        let grown = service(clock: TestClock(isStuck: true))
        await events.pauses.reach(2)
        grown.cancel()
        try await grown.value
        #expect(events.paused.compactMap { $0 as? IngestError }.first == error)
        #expect(log.records(of: .changes).count == held)
        // Behind those that were lost it goes on.
        for _ in 0..<2 { log.upload(Upload("[17]")) }
        log.upload(upload(4))
        let running = service()
        await log.commits.reach(7)
        running.cancel()
        try await running.value
        #expect(try written() == ["0", "1", "2", "3", "4"])
        #expect(log.committed(2) == 4)
    }

    @Test func reportsWhatItChecked() async throws {
        log.upload(Upload([#"{"table":"note","id":"1"}"#, "2", #"{"table":"note","id":"3","syncId":"zoe"}"#]))
        log.upload(Upload("{}"))
        let running = service(stepBytes: 1 << 20)
        await log.commits.reach(1)
        running.cancel()
        try await running.value
        #expect(events.refusedRecords == [UploadReference(partition: 2, offset: 1)])
        let counts = try #require(events.counts.first)
        #expect(events.counts.count == 1 && counts.records == 2 && counts.changes == 3)
        #expect(counts.refusals == [.invalidChange: 1, .notGranted: 1])
    }
}

/// What a service reported.
final class Events: Sendable {
    private let events = Mutex<[IngestEvent]>([])

    /// One for each partition that pauses.
    let pauses = Tally()

    @Sendable func add(_ event: IngestEvent) {
        events.withLock { $0.append(event) }
        if case .paused = event { pauses.add() }
    }

    var paused: [any Error] {
        events.withLock { $0.compactMap { if case .paused(2, let cause) = $0 { cause } else { nil } } }
    }

    var resumptions: Int { events.withLock { $0.count { if case .resumed(2) = $0 { true } else { false } } } }

    var restarts: [ChangeLogError] {
        events.withLock {
            $0.compactMap { if case .restarting(2, let cause as ChangeLogError, _) = $0 { cause } else { nil } }
        }
    }

    var uncommitted: [Int] {
        events.withLock {
            $0.compactMap { if case .endedUncommitted(let partition, _) = $0 { partition } else { nil } }
        }
    }

    var refusedRecords: [UploadReference] {
        events.withLock { $0.compactMap { if case .recordRefused(let upload, _) = $0 { upload } else { nil } } }
    }

    var counts: [IngestCounts] {
        events.withLock { $0.compactMap { if case .admitted(2, let counts) = $0 { counts } else { nil } } }
    }
}
