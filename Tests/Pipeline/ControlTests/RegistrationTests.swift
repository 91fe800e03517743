import ChangeLog
import Control
import MemoryChangeLog
import SyncModel
import SyncWire
import Testing

/// Several processes register schema versions at once: no number stands for two of them, whoever reads it and whenever.
@Suite(.timeLimit(.minutes(5)))
struct RegistrationTests {
    /// Opens a history whose newest version is `one`, and a log in which another process is quicker with what follows.
    private func raced(by rivals: [[ControlRecord]]) async throws -> (ControlTopic, BusyLog, MemoryChangeLog) {
        let log = emptyLog()
        let control = try await ControlTopic.open(in: log, proposed: proposed)
        try await control.register(one, in: log)
        return (control, BusyLog(log, rivals: rivals), log)
    }

    /// The log as compaction leaves it: the newest record of each key.
    private func compacted(_ log: MemoryChangeLog) async throws -> MemoryChangeLog {
        let records = log.records(of: place, from: 0)
        let kept = records.filter { record in !records.contains { $0.key == record.key && $0.offset > record.offset } }
        let after = emptyLog()
        try await append(kept.map { ($0.key, $0.value) }, to: after)
        return after
    }

    @Test func whoeverComesSecondEvolvesFromTheFirst() async throws {
        let (control, busy, log) = try await raced(by: [[try entry(2, two)]])
        let registered = try await control.register(three, in: busy)
        #expect(registered.version.ordinal == 3)
        #expect(control.schemas.hashes == (try hashes([one, two, three])))
        // The record that came too late is there, and nobody counts it.
        #expect(try await log.range(of: place).end == 5)
        let again = try await ControlTopic.open(in: log, proposed: proposed)
        #expect(again.schemas == control.schemas)
        await log.close()
    }

    @Test func whoeverComesSecondIsToldWhatItsTablesLack() async throws {
        let (control, busy, log) = try await raced(by: [[try entry(2, three)]])
        let other = [one[0].with(Column(name: "c", type: .text))]
        let error = await #expect(throws: ControlError.self) { try await control.register(other, in: busy) }
        #expect("\(try #require(error))".contains("the schema cannot follow the one that this history has"))
        let again = try await ControlTopic.open(in: log, proposed: proposed)
        #expect(again.schemas.hashes == (try hashes([one, three])))
        await log.close()
    }

    @Test func theSameSchemaFromTwoProcessesIsOneVersion() async throws {
        let (control, busy, log) = try await raced(by: [[try entry(2, two)]])
        #expect(try await control.register(two, in: busy).version.ordinal == 2)
        #expect(control.schemas.hashes == (try hashes([one, two])))
        await log.close()
    }

    @Test func aProcessSeesWhatOthersRegisteredSinceItBegan() async throws {
        let (control, _, log) = try await raced(by: [])
        let other = try await ControlTopic.open(in: log, proposed: proposed)
        try await other.register(two, in: log)
        #expect(try await control.register(two, in: log).version.ordinal == 2)
        #expect(try await control.register(three, in: log).version.ordinal == 3)
        #expect(try await log.range(of: place).end == 4)
        await log.close()
    }

    @Test func compactionTakesNoRecordAway() async throws {
        // The late record, and the first one's content once more, as when its acknowledgement was lost.
        let (control, busy, log) = try await raced(by: [[try entry(2, two)], [try entry(2, three), try entry(2, two)]])
        try await control.register(three, in: busy)
        let lost = ChangeLogError(.inputOutput, message: "the acknowledgement was lost", isRetriable: true)
        let four = [three[0].with(Column(name: "d", type: .real))]
        log.failNextAppend(lost, isStored: true)
        #expect(try await control.register(four, in: log).version.ordinal == 4)
        #expect(try await control.register(four, in: log).version.ordinal == 4)
        let after = try await compacted(log)
        #expect(try await after.range(of: place) == log.range(of: place))
        let again = try await ControlTopic.open(in: after, proposed: proposed)
        #expect(again.schemas.hashes == (try hashes([one, two, three, four])))
        await after.close()
        await log.close()
    }

    @Test func compactionLeavesBothRecordsOfANumber() async throws {
        let (control, _, log) = try await raced(by: [])
        let other = try await ControlTopic.open(in: log, proposed: proposed)
        let busy = BusyLog(log) {
            do { try await other.register(two, in: log) } catch { Issue.record(error) }
        }
        #expect(try await control.register(three, in: busy).version.ordinal == 3)
        let after = try await compacted(log)
        let again = try await ControlTopic.open(in: after, proposed: proposed)
        #expect(again.schemas.hashes == (try hashes([one, two, three])))
        await after.close()
        await log.close()
    }

    @Test func logsWithOneKeyForEachNumberAreStillRead() async throws {
        let log = emptyLog()
        try await append(
            [
                (Array("history".utf8), ControlRecord.history(proposed).encode()),
                (Array("schema/1".utf8), try entry(1, one).encode()),
            ], to: log)
        let control = try await ControlTopic.open(in: log, proposed: proposed)
        try await control.register(two, in: log)
        let again = try await ControlTopic.open(in: log, proposed: proposed)
        #expect(again.schemas.hashes == (try hashes([one, two])))
        await log.close()
    }
}

extension Table {
    fileprivate func with(_ column: Column) -> Table { Table(name: name, policy: policy, columns: columns + [column]) }
}
