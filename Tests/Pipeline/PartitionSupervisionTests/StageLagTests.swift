import ChangeLog
import MemoryChangeLog
import Metrics
import PartitionSupervision
import Synchronization
import TestClocks
import TestSignals
import Testing

/// How far stages are behind.
@Suite(.timeLimit(.minutes(5))) struct StageLagTests {
    private let registry = MetricRegistry()

    /// The lag of a stage in a partition in the exported text; `nil` where it is missing.
    private func lag(_ stage: MetricStage, _ partition: Int) async -> (records: String?, seconds: String?) {
        lag(stage, partition, in: await text())
    }

    private func text() async -> String { String(decoding: await registry.text(), as: UTF8.self) }

    private func lag(_ stage: MetricStage, _ partition: Int, in text: String) -> (records: String?, seconds: String?) {
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

    @Test func scrapesDoNotWaitForAPartitionThatDoesNotRespondAndAskForItOnce() async throws {
        let (log, clock) = (SilentLog(partitions: 3), ManualClock())
        registry.collectLag(of: log, partitions: 3, within: .seconds(2), clock: clock)
        for partition in 0..<3 { registry.position(of: .ordering, in: partition).set(0) }
        let silent = TopicPartition(.changes, 1)
        log.silent.withLock { $0 = silent }

        async let first = text()
        try await log.isWaiting.nextOrCancellation()
        await clock.sleepers(1)
        clock.advance(by: .seconds(2))
        for text in [await first, await text()] {
            #expect(lag(.ordering, 0, in: text).records == "0")
            #expect(lag(.ordering, 1, in: text) == (nil, nil))
            #expect(lag(.ordering, 2, in: text) == (nil, nil))
            // The metrics that need no log.
            #expect(text.contains("\nweir_stage_next_offset{stage=\"ordering\",partition=\"1\"} 0\n"))
        }
        #expect(log.asked.withLock { $0 } == [TopicPartition(.changes, 0), silent])

        // The next reading comes to the others before it.
        log.respond.send()
        async let advancing: Void = {
            try await log.isWaiting.nextOrCancellation()
            await clock.sleepers(1)
            clock.advance(by: .seconds(2))
        }()
        var later = ""
        repeat {
            // The first scrapes may come before the first reading has ended.
            later = await self.text()
        } while lag(.ordering, 2, in: later) == (nil, nil) && !Task.isCancelled
        try await advancing
        #expect(lag(.ordering, 0, in: later).records == "0")
        #expect(lag(.ordering, 1, in: later) == (nil, nil))
        #expect(lag(.ordering, 2, in: later).records == "0")
        log.respond.send()
        await log.base.close()
    }

    /// As where much is behind, and each takes a while to read.
    @Test func theRecordsOfAllPartitionsAreCountedAndTheAgesAreReadInTurns() async throws {
        let (log, clock) = (SilentLog(partitions: 3), ManualClock())
        registry.collectLag(of: log, partitions: 3, within: .seconds(2), clock: clock)
        let producer = try await log.producer()
        for partition in 0..<3 {
            try await producer.append([NewRecord(to: TopicPartition(.changes, partition), value: [1])])
            registry.position(of: .ordering, in: partition).set(0)
        }
        log.holdsReaders.withLock { $0 = true }
        for round in 0..<3 {
            let scrape = Task {
                var text = ""
                // The first scrapes may come before the reading before has ended.
                while log.readers.withLock({ $0.count }) == round { text = await self.text() }
                return text
            }
            try await log.isWaiting.nextOrCancellation()
            await clock.sleepers(1)
            clock.advance(by: .seconds(2))
            let text = await scrape.value
            #expect((0..<3).map { lag(.ordering, $0, in: text).records } == ["1", "1", "1"])
            log.respond.send()
        }
        #expect(log.readers.withLock { $0.map(\.partition) } == [0, 1, 2])
        await producer.close()
        await log.base.close()
    }
}

/// A log in which one partition does not say what it holds until the test lets it.
private final class SilentLog: ChangeLog {
    let base: MemoryChangeLog
    let silent = Mutex<TopicPartition?>(nil)
    /// Whether readers, too, are opened once the test lets them.
    let holdsReaders = Mutex(false)
    let readers = Mutex<[TopicPartition]>([])
    let asked = Mutex<[TopicPartition]>([])
    let isWaiting = Signal<Void>()
    let respond = Signal<Void>()

    init(partitions: Int) { base = MemoryChangeLog(MemoryLogContents(partitionCount: partitions)) }

    var partitionCount: Int { base.partitionCount }
    var maximumRecordSize: Int { base.maximumRecordSize }

    func producer() async throws(ChangeLogError) -> MemoryChangeLog.Producer { try await base.producer() }

    func reader(
        of partition: TopicPartition, from offset: Int64
    ) async throws(ChangeLogError) -> MemoryChangeLog.Reader {
        readers.withLock { $0.append(partition) }
        if holdsReaders.withLock(\.self) {
            isWaiting.send()
            await respond.next()
        }
        return try await base.reader(of: partition, from: offset)
    }

    func range(of partition: TopicPartition) async throws(ChangeLogError) -> LogRange {
        asked.withLock { $0.append(partition) }
        if partition == silent.withLock({ $0 }) {
            isWaiting.send()
            await respond.next()
            throw ChangeLogError(.other, partition: partition, message: "no response", isRetriable: true)
        }
        return try await base.range(of: partition)
    }

    func join(group: String, topic: Topic) async throws(ChangeLogError) -> MemoryChangeLog.Membership {
        try await base.join(group: group, topic: topic)
    }
}
