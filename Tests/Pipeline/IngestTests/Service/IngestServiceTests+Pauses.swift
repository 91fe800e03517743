import ChangeLog
import Ingest
import PartitionSupervision
import SyncModel
import SyncWire
import Testing

/// What pauses a partition, and what lets it go on.
extension IngestServiceTests {
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
}
