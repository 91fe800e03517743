import ChangeLog
import Control
import MemoryChangeLog
import PartitionSupervision
import SyncModel
import SyncWire
import TestClocks
import Testing

/// Operators decide that a record is left out; all processes agree on which.
@Suite(.timeLimit(.minutes(5)))
struct SkippingTests {
    private let log = emptyLog()
    private let position = SkippedRecord.Position(.changes, 1, offset: 7)

    private func opened() async throws -> ControlTopic {
        let control = try await ControlTopic.open(in: log, proposed: proposed)
        try await control.register(one, in: log)
        return control
    }

    @Test func theFirstDecisionAboutARecordCounts() async throws {
        let control = try await opened()
        let other = try await opened()
        #expect(try await control.skip(position, reason: "first", in: log).record.reason == "first")
        #expect(try await other.skip(position, reason: "second", in: log).record.reason == "first")
        let reopened = try await opened()
        let skipped = reopened.skipped
        #expect(skipped.entries.map(\.record.reason) == ["first"])
        #expect(skipped == other.skipped)
        #expect(skipped[.changes, 1, 7] != nil)
        // Another topic, partition and offset.
        #expect(skipped[.uploads, 1, 7] == nil && skipped[.changes, 0, 7] == nil && skipped[.changes, 1, 8] == nil)
        await log.close()
    }

    @Test func aDecisionIsVoidIfASchemaVersionWasRegisteredMeanwhile() async throws {
        let control = try await opened()
        let busy = BusyLog(log, rivals: [[try entry(2, two)]])
        let error = await #expect(throws: ControlError.self) {
            try await control.skip(position, reason: "too late", in: busy)
        }
        #expect("\(try #require(error))".contains("a schema version was registered at the same time"))
        #expect(control.skipped.entries.isEmpty && control.schemas.entries.count == 2)
        #expect(try await ControlTopic.existing(in: log).skipped.entries.isEmpty)
        // With that version the operator may decide again.
        #expect(try await control.skip(position, reason: "anyway", in: log).record.schemaVersions == 2)
        #expect(try await ControlTopic.existing(in: log).skipped.entries.count == 1)
        await log.close()
    }

    /// As a process of this version reads what a newer one decides.
    @Test func recordsOfAnotherKindDoNotKeepAProcessFromStarting() async throws {
        _ = try await opened()
        try await append([(key: Array("other/1".utf8), value: [0x08, 0x01, 0x7A, 0x00])], to: log)
        let control = try await ControlTopic.existing(in: log)
        try await control.register(two, in: log)
        #expect(try await ControlTopic.open(in: log, proposed: proposed).schemas.hashes == hashes([one, two]))
        // It may be a schema version whose number is taken then.
        try await append([(key: Array("schema/3/1".utf8), value: [0x08, 0x01, 0x7A, 0x00])], to: log)
        await #expect(throws: ControlError.self) { try await ControlTopic.existing(in: log) }
        await log.close()
    }

    @Test func aRunningProcessLearnsOfDecisionsAndIgnoresVoidOnes() async throws {
        let control = try await opened()
        let lines = Lines()
        let following = Task { [log] in try await control.follow(log, logger: lines.logger) }
        let void = SkippedRecord(.init(.uploads, 0, offset: 3), reason: "void", schemaVersions: 0)
        try await append([.skip(void)], to: log)
        #expect(await lines.next(with: "is ignored: a schema version was registered meanwhile") != nil)
        let other = try await opened()
        _ = try await other.skip(position, reason: "produced by hand", in: log)
        try await control.known.wait { $0.skipped[.changes, 1, 7] != nil }
        #expect(control.skipped.entries.count == 1)
        #expect(await lines.next(with: "A record is left out, as an operator decided") != nil)
        following.cancel()
        try await following.value
        await log.close()
    }
}
