import ChangeLog
import MemoryChangeLog
import Metrics
import PartitionSupervision
import Synchronization
import Testing

/// How far stages are behind.
@Suite(.timeLimit(.minutes(5))) struct StageLagTests {
    private let registry = MetricRegistry()

    /// The lag of a stage in a partition in the exported text; `nil` where it is missing.
    private func lag(_ stage: MetricStage, _ partition: Int) async -> (records: String?, seconds: String?) {
        let text = String(decoding: await registry.text(), as: UTF8.self)
        let labels = "{stage=\"\(stage.rawValue)\",partition=\"\(partition)\"} "
        let values = ["weir_stage_lag_records", "weir_stage_lag_seconds"].map { name in
            text.split(separator: "\n").first { $0.hasPrefix(name + labels) }.map {
                String($0.dropFirst((name + labels).count))
            }
        }
        return (values[0], values[1])
    }

    @Test func lagIsTheNumberOfUnfinishedRecordsAndTheAgeOfTheOldest() async throws {
        let time = Mutex<Int64>(1_000_000_000)
        let log = MemoryChangeLog(MemoryLogContents(partitionCount: 2), clock: { time.withLock { $0 } })
        registry.collectLag(of: log, partitions: 2, now: { 1_010_000_000 })
        let position = registry.position(of: .ordering, in: 1)
        // The stage has no position yet.
        #expect(await lag(.ordering, 1) == (nil, nil))
        position.set(0)
        #expect(await lag(.ordering, 1) == ("0", "0"))

        let producer = try await log.producer()
        for _ in 0..<3 {
            try await producer.append([NewRecord(to: TopicPartition(.changes, 1), value: [1, 2, 3])])
            time.withLock { $0 += 2_500_000 }
        }
        #expect(await lag(.ordering, 1) == ("3", "10"))
        position.set(1)
        #expect(await lag(.ordering, 1) == ("2", "7.5"))
        position.set(3)
        #expect(await lag(.ordering, 1) == ("0", "0"))
        // Other stages read other topics, and other partitions are others.
        registry.position(of: .fanOut, in: 1).set(0)
        registry.position(of: .ordering, in: 0).set(0)
        #expect(await lag(.fanOut, 1) == ("0", "0"))
        #expect(await lag(.ordering, 0) == ("0", "0"))
        await producer.close()
        await log.close()
    }

    @Test func aClosedLogIsNotAFailure() async throws {
        let log = MemoryChangeLog(MemoryLogContents(partitionCount: 1), clock: { 1_000_000_000 })
        let producer = try await log.producer()
        try await producer.append([NewRecord(to: TopicPartition(.uploads, 0), value: [1])])
        registry.collectLag(of: log, partitions: 1)
        registry.position(of: .ingest, in: 0).set(0)
        await producer.close()
        await log.close()
        let left = await lag(.ingest, 0)
        #expect(left.seconds == nil)
    }
}
