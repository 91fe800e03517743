import ChangeLog
import Configuration
import MemoryChangeLog
import Metrics
import Ordering
import RecordStore
import SyncModel
import TestClocks
import Testing

/// What the stage counts.
@Suite(.timeLimit(.minutes(5)))
struct MetricsTests {
    private let registry = MetricRegistry()

    private func messages(_ outcome: String) -> Int { registry.counter(.orderingMessages, [.outcome: outcome]).value }

    @Test(arguments: [1, 1 << 20])
    func countsMessagesChangesAndWhereItStands(stepBytes: Int) async throws {
        try await withLogAndTables { log, tables in
            var maker = PartMaker()
            let parts = maker.creations(5)
            try await log.append(parts)
            // The same deliveries once more: dropped.
            try await log.append(Array(parts.prefix(2)))
            let stage = Stage(
                log, WatchedStore(tables), configuration: OrderingConfiguration().with(\.stepBytes, stepBytes),
                metrics: OrderingMetrics(registry))
            await stage.store.until(7)
            while registry.position(of: .ordering, in: 0).value != 7 { await Task.yield() }
            // Its worker may not have begun by now.
            #expect(registry.position(of: .ordering, in: 1).value ?? 0 == 0)
            try await stage.stop()
        }
        #expect(messages("ordered") == 5)
        #expect(messages("dropped") == 2)
        #expect(registry.counter(.orderingChanges, [.outcome: "applied"]).value == 5)
        #expect(registry.counter(.orderingChanges, [.outcome: "conflict"]).value == 0)
        #expect(registry.histogram(.orderingStepMessages).snapshot.sum == 7)
        #expect(registry.gauge(.orderingUnwrittenBytes).value == 0)
        // It works on none any more.
        #expect(registry.position(of: .ordering, in: 0).value == nil)
        let steps = registry.histogram(.orderingStepMessages).snapshot.cumulative.last
        #expect(registry.histogram(.orderingWriteDuration).snapshot.cumulative.last == steps)
    }

    /// Both versions of the row once, whatever the number of edits.
    @Test func manyEditsOfOneRowCopyItsValuesOnce() async throws {
        let size = 50_000
        try await withLogAndTables { log, tables in
            var maker = PartMaker()
            let creation = maker.part([.edit("r", ["0", "\"\(String(repeating: "x", count: size))\""])])
            let edits = maker.part((0..<500).map { .edit("r", ["\($0)"]) })
            try await log.append([creation, edits])
            let stage = Stage(log, WatchedStore(tables), metrics: OrderingMetrics(registry))
            await stage.store.until(2)
            try await stage.stop()
        }
        #expect(registry.counter(.orderingChanges, [.outcome: "applied"]).value == 501)
        #expect((2 * size..<3 * size).contains(registry.counter(.orderingCopiedBytes).value))
    }

    @Test func tellsOfAPausedPartitionAndNoOther() async throws {
        try await withLogAndTables { log, tables in
            let producer = try await log.producer()
            try await producer.append([NewRecord(to: TopicPartition(.changes, 1), value: [0xFF, 0xFF])])
            await producer.close()
            let stage = Stage(
                log, WatchedStore(tables), metrics: OrderingMetrics(registry), clock: ManualClock())
            await stage.lines.until("paused", "changes[1] offset 0")
            #expect(registry.gauge(.orderingPaused, [.partition: "1"]).value == 1)
            try await stage.stop()
        }
        // Another process may have them now.
        for partition in ["0", "1"] {
            #expect(registry.gauge(.orderingPaused, [.partition: partition]).value == 0)
        }
    }

    @Test func countsWhatIsTriedAgain() async throws {
        let busy = RecordStoreError(.unavailable, message: "busy", isRetriable: true)
        try await withLogAndTables { log, tables in
            var maker = PartMaker()
            try await log.append(maker.creations(3))
            let store = WatchedStore(tables) { number throws(RecordStoreError) in
                if number < 2 { throw busy }
            } beforeRead: { _ throws(RecordStoreError) in
            }
            let stage = Stage(log, store, metrics: OrderingMetrics(registry))
            await store.until(3)
            try await stage.stop()
            #expect(stage.clock.sleeps.count == 2)
        }
        #expect(registry.retries(of: .ordering).value == 2)
        #expect(registry.gauge(.orderingUnwrittenBytes).value == 0)
    }
}
