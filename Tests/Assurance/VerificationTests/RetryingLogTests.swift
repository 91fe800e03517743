import ChangeLog
import MemoryChangeLog
import RecordStore
import SyncModel
import Synchronization
import TestClocks
import Testing
import Verification

/// A verification of hours continues after a short outage of the log.
@Suite(.timeLimit(.minutes(5))) struct RetryingLogTests {
    private func log(
        _ base: MemoryChangeLog, failing faults: Faults, _ clock: RecordingClock, limit: Duration = .seconds(60)
    ) -> RetryingLog<FaultyLog> {
        RetryingLog(FaultyLog(base: base, faults: faults), limit: limit, clock: clock, logger: World.logger)
    }

    @Test func retriableErrorsAreRetried() async throws {
        try await World.with { world in
            try await world.appendChanges(60)
            try await world.order()
            let clock = RecordingClock()
            let faults = Faults(everyOther: ChangeLogError(.inputOutput, message: "away", isRetriable: true))
            let reports = try await world.withTables { tables in
                try await world.withTables(at: world.folder + "/scratch.db") { made in
                    try await Verifier(
                        World.source(log(world.log, failing: faults, clock)), tables: tables, scratch: made,
                        streams: world.folder
                    ).run()
                }
            }
            let findings = reports.flatMap(\.lines).filter { $0.subject == "tables" || $0.subject == "ordered" }
            #expect(findings.count == 2 && findings.allSatisfy(\.finding.isEqual), "\(findings)")
            #expect(faults.count > 5 && clock.sleeps.count == faults.count)
        }
    }

    @Test func retriesEndAtTheLimit() async throws {
        try await World.with { world in
            let clock = RecordingClock()
            let error = ChangeLogError(.inputOutput, message: "away", isRetriable: true)
            let log = log(world.log, failing: Faults(each: error), clock, limit: .seconds(30))
            await #expect(throws: error) { try await log.range(of: TopicPartition(.changes, 0)) }
            let waited = clock.sleeps.reduce(.zero, +)
            #expect(waited >= .seconds(30) && waited < .seconds(40))
            #expect(clock.sleeps.first == .milliseconds(250) && clock.sleeps.last == .seconds(5))
        }
    }

    @Test func otherErrorsAreThrownAtOnce() async throws {
        try await World.with { world in
            let clock = RecordingClock()
            let error = ChangeLogError(.corrupt, message: "damaged")
            let log = log(world.log, failing: Faults(each: error), clock)
            await #expect(throws: error) { try await log.reader(of: TopicPartition(.changes, 0), from: 0) }
            #expect(clock.sleeps.isEmpty)
        }
    }
}

/// Which calls fail.
private final class Faults: Sendable {
    private let error: ChangeLogError
    private let isEach: Bool
    private let calls = Mutex(0)

    init(each error: ChangeLogError) { (self.error, isEach) = (error, true) }

    init(everyOther error: ChangeLogError) { (self.error, isEach) = (error, false) }

    /// Calls that failed.
    var count: Int { calls.withLock { isEach ? $0 : ($0 + 1) / 2 } }

    /// Fails the call if it is due.
    func strike() throws(ChangeLogError) {
        let isDue = calls.withLock { calls in
            calls += 1
            return isEach || calls % 2 == 1
        }
        if isDue { throw error }
    }
}

/// A log whose reads fail.
private struct FaultyLog: ChangeLog {
    struct Reader: LogReader {
        let base: MemoryChangeLog.Reader
        let faults: Faults

        func next(maximumBytes: Int) async throws -> [LogRecord] {
            try faults.strike()
            return try await base.next(maximumBytes: maximumBytes)
        }

        func close() async { await base.close() }
    }

    let base: MemoryChangeLog
    let faults: Faults

    var partitionCount: Int { base.partitionCount }
    var maximumRecordSize: Int { base.maximumRecordSize }

    func producer() async throws(ChangeLogError) -> MemoryChangeLog.Producer { try await base.producer() }

    func reader(of partition: TopicPartition, from offset: Int64) async throws(ChangeLogError) -> Reader {
        try faults.strike()
        return Reader(base: try await base.reader(of: partition, from: offset), faults: faults)
    }

    func range(of partition: TopicPartition) async throws(ChangeLogError) -> LogRange {
        try faults.strike()
        return try await base.range(of: partition)
    }

    func join(group: String, topic: Topic) async throws(ChangeLogError) -> MemoryChangeLog.Membership {
        try await base.join(group: group, topic: topic)
    }
}
