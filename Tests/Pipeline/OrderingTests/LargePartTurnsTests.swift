import ChangeLog
import Configuration
import MemoryChangeLog
import Ordering
import RecordStore
import SQLiteRecordStore
import SyncModel
import TestClocks
import Testing

/// Parts of several partitions that each touch more rows than one lookup returns: they take turns.
@Suite(.timeLimit(.minutes(5)))
struct LargePartTurnsTests {
    private static let configuration = OrderingConfiguration().with(\.stepRowBytes, 30_000)
    private static let rowCount = 12

    /// Tables with rows that are larger than a lookup, of an owner in each of the two partitions.
    private func withLargeRows(_ body: (MemoryChangeLog, SQLiteRecordStore) async throws -> Void) async throws {
        try await withLogAndTables { log, tables in
            for partition in 0...1 {
                var maker = PartMaker()
                let text = "\"\(String(repeating: "x", count: 10_000))\""
                let parts = (0..<Self.rowCount).map { number in
                    maker.part(
                        [.edit("r\(number)", ["1", text])], owner: Self.owner(partition), batch: Int64(number + 1))
                }
                try await log.append(parts, to: partition)
            }
            let stage = Stage(log, WatchedStore(tables))
            for partition in 0...1 { await stage.store.until(Int64(Self.rowCount), in: partition) }
            try await stage.stop()
            try await body(log, tables)
        }
    }

    private static func owner(_ partition: Int) -> String { partition == 0 ? "abc" : "ghi" }

    /// Appends a batch that edits all of these rows.
    private func append(to partition: Int, of log: MemoryChangeLog) async throws {
        var maker = PartMaker()
        for _ in 0...Self.rowCount { _ = maker.part([]) }
        let edits = (0..<Self.rowCount).map { Change.edit("r\($0)", ["7"]) }
        var part = maker.part(edits, owner: Self.owner(partition), device: "k2", batch: 1)
        part.maxBatchRowBytes = 1 << 30
        try await log.append([part], to: partition)
    }

    private var end: Int64 { Int64(Self.rowCount + 1) }

    @Test
    func thePartOfAnotherPartitionIsReadOnceTheFirstIsWritten() async throws {
        try await withLargeRows { log, tables in
            let release = Signal<Void>()
            let store = WatchedStore(tables) { number in
                if number == 0 { await release.until { !$0.isEmpty } }
            }
            let stage = Stage(log, store, configuration: Self.configuration, clock: ManualClock())
            try await append(to: 0, of: log)
            await store.untilCommitting(0)
            try await append(to: 1, of: log)
            await store.untilRead(1)
            release.add(())
            await store.until(end, in: 0)
            await store.until(end, in: 1)
            try await stage.stop()
            let events = store.events.facts
            let written = try #require(events.firstIndex { if case .committed = $0 { true } else { false } })
            let before = events[..<written].count { if case .readRows(1) = $0 { true } else { false } }
            #expect(before == 1, "the first lookup shows that the part is large")
        }
    }

    @Test
    func tablesThatFailForOnePartitionDoNotHoldUpTheOther() async throws {
        try await withLargeRows { log, tables in
            let store = WatchedStore(tables) { number throws(RecordStoreError) in
                if number == 0 { throw RecordStoreError(.unavailable, message: "busy", isRetriable: true) }
            }
            let clock = ManualClock()
            let stage = Stage(
                log, store, configuration: Self.configuration.with(\.retryDelay, .seconds(7)), clock: clock)
            try await append(to: 0, of: log)
            await clock.sleeper(for: .seconds(7))
            try await append(to: 1, of: log)
            await store.until(end, in: 1)
            clock.advance(by: .seconds(7))
            await store.until(end, in: 0)
            try await stage.stop()
        }
    }

    @Test
    func tablesThatDoNotAnswerOnePartitionHoldUpTheOtherForALimitedTime() async throws {
        try await withLargeRows { log, tables in
            let release = Signal<Void>()
            let store = WatchedStore(tables) { number in
                if number == 0 { await release.until { !$0.isEmpty } }
            }
            let clock = ManualClock()
            let stage = Stage(log, store, configuration: Self.configuration, clock: clock)
            try await append(to: 0, of: log)
            await store.untilCommitting(0)
            await clock.sleeper(for: .seconds(30))
            try await append(to: 1, of: log)
            await store.untilRead(1)
            clock.advance(by: .seconds(30))
            await store.until(end, in: 1)
            release.add(())
            await store.until(end, in: 0)
            try await stage.stop()
        }
    }
}

extension LargePartTurnsTests {
    @Test
    func aPartThatIsCancelledWhileItWaitsMakesWayForTheNext() async throws {
        let (turns, clock) = (LargePartTurns(), ManualClock())
        let first = try await turns.take(clock)
        let second = Task.immediate { try await turns.take(clock) }
        let third = Task.immediate { try await turns.take(clock) }
        second.cancel()
        await #expect(throws: CancellationError.self) { _ = try await second.value }
        first.giveBack()
        _ = try await third.value
    }
}

extension WatchedStore {
    /// Waits until a partition is to be written.
    fileprivate func untilCommitting(_ partition: Int) async {
        await events.until { events in
            events.contains {
                if case .committing(let steps) = $0 { steps.contains { $0.partition == partition } } else { false }
            }
        }
    }

    /// Waits until rows of a partition were read.
    fileprivate func untilRead(_ partition: Int) async {
        await events.until { events in
            events.contains { if case .readRows(partition) = $0 { true } else { false } }
        }
    }
}
