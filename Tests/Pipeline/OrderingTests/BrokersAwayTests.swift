import ChangeLog
import Configuration
import KafkaChangeLog
import Metrics
import MockKafka
import Ordering
import SyncModel
import SyncWire
import Testing

/// Brokers that acknowledge nothing while a partition's worker ends.
@Suite(.timeLimit(.minutes(5)))
struct BrokersAwayTests {
    /// A machine that loses its network loses brokers and tables together, and the worker's own failure comes first.
    @Test
    func aWorkerThatEndsByItselfWhileNothingIsAcknowledgedIsTriedAgainAndTheStageGoesOn() async throws {
        let cluster = MockCluster()
        let log = try await cluster.openLog(partitions: 2)
        try await withLogAndTables { _, tables in
            var maker = PartMaker()
            let first = maker.creations(1)
            // Read together: the first is published when the second turns out to be unreadable.
            let producer = try await log.producer()
            try await producer.append(
                first.map { NewRecord(to: TopicPartition(.changes, 0), value: $0.encode(naming: Fixture.newest)) }
                    + [NewRecord(to: TopicPartition(.changes, 0), value: [255])])
            await producer.close()
            let store = WatchedStore(tables) { _ in
            } beforeRead: { number in
                if number == 0 { cluster.goDown() }
            } beforePosition: { number in
                // After those of the first attempt: at its start and with its lookup.
                if number == 2 { cluster.comeUp() }
            }
            let stage = Stage(log, store)
            await store.until(1)
            try #require(!stage.hasEnded)
            try await log.append(maker.creations(1, owner: "ghi"), to: 1)
            await store.until(1, in: 1)
            try #require(!stage.hasEnded)
            await stage.lines.until("paused", "offset 1: the record cannot be read")
            try await stage.stop()
            #expect(try await store.tables(of: 0) == ByHand(first).tables)
        }
        await log.close()
    }

    /// The queue of a producer is full, and no broker empties it.
    @Test
    func aWorkerThatWaitsForRoomEndsWhenItIsCancelled() async throws {
        let cluster = MockCluster()
        let log = try await cluster.openLog(partitions: 2, queueBytes: 10_000)
        try await withLogAndTables { _, tables in
            var maker = PartMaker()
            let text = "\"\(String(repeating: "x", count: 4000))\""
            try await log.append([maker.part((0..<8).map { .edit("r\($0)", ["1", text]) }, batch: 1)])
            let store = WatchedStore(tables) { _ in
            } beforeRead: { _ in
                cluster.goDown()
            }
            let registry = MetricRegistry()
            let stage = Stage(log, store, metrics: OrderingMetrics(registry))
            // Counted when the part is decided, before its results are enqueued.
            let decided = registry.counter(.orderingMessages, [.outcome: "ordered"])
            while decided.value == 0 { await Task.yield() }
            try await stage.stop()
            cluster.comeUp()
        }
        await log.close()
    }
}
