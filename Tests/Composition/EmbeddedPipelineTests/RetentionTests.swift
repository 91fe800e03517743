import ChangeLog
import Ingest
import MemoryChangeLog
import MemoryRecordStore
import Observability
import RecordStore
import SyncModel
import SyncWire
import TestClocks
import Testing

@testable import EmbeddedPipeline

/// What is acknowledged stays until the next topic has it, however old it is (I1): nothing else in a cluster repeats it.
@Suite(.timeLimit(.minutes(5))) struct RetentionTests {
    private static let history = History(epoch: "e1", partitions: 2)
    private static let schemas: SchemaHistory = {
        let schema = Schema(tables: [Table(name: "note", columns: [])])
        var schemas = SchemaHistory()
        schemas.append(.init(version: SchemaVersion(ordinal: 1, of: schema), schema: schema))
        return schemas
    }()
    private static let count: Int64 = 10

    private let clock = ManualClock()
    /// Its records are of 1970, older than any age that is kept.
    private let log = MemoryChangeLog(MemoryLogContents(partitionCount: 2), clock: { 0 })
    private let store = MemoryRecordStore()

    private func append(_ values: [[UInt8]], to partition: TopicPartition) async throws {
        let producer = try await log.producer()
        try await producer.append(values.map { NewRecord(to: partition, value: $0) })
        await producer.close()
    }

    private func fill(_ topic: Topic) async throws {
        for partition in 0..<Self.history.partitions {
            try await append((0..<UInt8(Self.count)).map { [$0] }, to: TopicPartition(topic, partition))
        }
    }

    /// Appends parts of uploads to the partition of `changes` with the same number.
    private func admit(
        _ offsets: [Int64], of partition: Int = 0, to changes: Int? = nil, epoch: String = history.epoch
    ) async throws {
        let owner = SyncID(unchecked: "abc")
        let entry = Self.schemas.entries[0]
        let parts = offsets.map { offset in
            ChangePart(
                epoch: epoch, schema: entry.version.hash,
                upload: UploadReference(partition: partition, offset: offset), logTime: 0, part: 0, owner: owner,
                device: Device(caller: owner, knowledgeID: KnowledgeID(unchecked: "k1")), batch: 1,
                contentHash: Array(repeating: 0, count: 32), changes: [], summary: BatchSummary(changeCount: 0))
        }
        try await append(
            parts.map { $0.encode(naming: entry.schema) }, to: TopicPartition(.changes, changes ?? partition))
    }

    /// Ingest has committed offsets, by partition.
    private func commit(_ offsets: [Int: Int64]) async throws {
        let member = try await log.join(group: IngestConfiguration.group, topic: .uploads)
        let (committed, continuation) = AsyncStream.makeStream(of: Void.self)
        async let run: Void = member.run { assignment in
            if let offset = offsets[assignment.partition.partition] { try await assignment.commit(offset) }
            continuation.yield()
        }
        var remaining = Self.history.partitions
        for await _ in committed {
            remaining -= 1
            if remaining == 0 { break }
        }
        await member.leave()
        try await run
    }

    /// The first offsets of a topic's partitions after so many removals, one an hour.
    private func starts(
        of topic: Topic, topics: [Topic]? = nil, after removals: Int = 1,
        _ floors: @escaping @Sendable (Topic) async throws -> [Int: Int64]
    ) async throws -> [Int64] {
        let retention = Retention(
            log: log, topics: topics ?? [topic], keep: .seconds(1), floors: floors, logger: .disabled, clock: clock)
        try await withThrowingTaskGroup { group in
            group.addTask { try await retention.run() }
            for number in 1...removals {
                await clock.sleepers(1)
                if number < removals { clock.advance(by: .seconds(3600)) }
            }
            group.cancelAll()
            try await group.waitForAll()
        }
        var starts: [Int64] = []
        for partition in 0..<Self.history.partitions {
            starts.append(try await log.range(of: TopicPartition(topic, partition)).start)
        }
        return starts
    }

    private func uploadStarts() async throws -> [Int64] {
        try await starts(of: .uploads) { [log] _ in try await log.uploadFloors(Self.history) }
    }

    @Test func uploadsWithoutAPartInChangesAreKeptWhateverTheGroupHasCommitted() async throws {
        try await fill(.uploads)
        try await commit([0: Self.count, 1: Self.count])
        try await admit([0, 1, 2, 3, 4])
        // Of partition 1 none was admitted.
        #expect(try await uploadStarts() == [4, 0])
    }

    @Test func uploadsAreKeptWhereTheGroupIsUnknownOrHasCommittedLess() async throws {
        try await fill(.uploads)
        for partition in 0...1 { try await admit([9], of: partition) }
        // Kafka has forgotten the group, or a mirror has the topics alone.
        #expect(try await uploadStarts() == [0, 0])
        try await commit([0: 6])
        #expect(try await uploadStarts() == [6, 0])
    }

    @Test func partsOfOtherPartitionsAndHistoriesAreNoEvidence() async throws {
        try await fill(.uploads)
        try await commit([0: Self.count, 1: Self.count])
        try await admit([2])
        // A part for another owner, and one from before the topics were recreated.
        try await admit([8], of: 1, to: 0)
        try await admit([7], epoch: "e0")
        #expect(try await uploadStarts() == [2, 0])
    }

    @Test func uploadsThatWereAdmittedAndCommittedAreRemovedUpToTheNewest() async throws {
        try await fill(.uploads)
        try await commit([0: Self.count, 1: Self.count])
        for partition in 0...1 { try await admit(Array(0..<Self.count), of: partition) }
        #expect(try await uploadStarts() == [9, 9])
    }

    @Test func resultsThatTheTablesDoNotHaveYetAreKept() async throws {
        try await fill(.ordered)
        try await store.prepare(Self.schemas, epoch: Self.history.epoch)
        try await store.commit([
            StoreStep(partition: 1, expected: nil, position: StoredPosition(orderedOffset: 7), rows: [], outcomes: [])
        ])
        let starts = try await starts(of: .ordered) { [store] _ in
            try await store.orderedFloors(partitions: Self.history.partitions)
        }
        #expect(starts == [0, 7])
    }

    private struct Unreachable: Error {}

    @Test func aTopicWhoseFloorsAreNotKnownIsKeptAndDelaysNoOther() async throws {
        try await fill(.ordered)
        try await fill(.deadLetters)
        let starts = try await starts(of: .deadLetters, topics: [.ordered, .deadLetters]) { topic in
            guard topic == .ordered else { return [:] }
            throw Unreachable()
        }
        #expect(starts == [9, 9])
        #expect(try await log.range(of: TopicPartition(.ordered, 0)).start == 0)
    }

    @Test func aTopicIsTriedAgainEachHour() async throws {
        try await fill(.deadLetters)
        let attempts = Attempts()
        let starts = try await starts(of: .deadLetters, after: 3) { _ in
            guard await attempts.next() == 3 else { throw Unreachable() }
            return [:]
        }
        #expect(starts == [9, 9])
    }

    private actor Attempts {
        private var count = 0

        func next() -> Int {
            count += 1
            return count
        }
    }
}
