import ChangeLog
import Configuration
import Ingest
import KafkaChangeLog
import MockKafka
import PartitionSupervision
import SyncModel
import SyncWire
import Synchronization
import Testing

/// Brokers that acknowledge nothing while a partition's run ends.
@Suite(.timeLimit(.minutes(5)))
struct BrokersAwayTests {
    private func upload(_ id: Int) -> Upload { Upload([#"{"table":"note","id":"\#(id)","syncId":"bob"}"#]) }

    private func append(_ uploads: [Upload], to log: KafkaChangeLog) async throws {
        let producer = try await log.producer()
        try await producer.append(
            uploads.map { upload in
                let record = upload.record
                return NewRecord(
                    to: TopicPartition(.uploads, upload.partition), key: record.key, value: record.value)
            })
        await producer.close()
    }

    private func service(
        _ log: KafkaChangeLog, report: @escaping @Sendable (IngestEvent) -> Void
    ) -> IngestService<KafkaChangeLog> {
        IngestService(
            StageContext(
                log: log, history: Fixture.history, schemas: KnownSchemas(Fixture.schemas), clock: TestClock()),
            configuration: IngestConfiguration(), report: report)
    }

    /// What was enqueued before the record is made again once brokers are back, although the record itself must wait.
    @Test func aRunThatEndsByItselfWhileNothingIsAcknowledgedIsTriedAgainAndTheStageGoesOn() async throws {
        let cluster = MockCluster()
        let log = try await cluster.openLog(partitions: 4)
        // Read together: the first is enqueued when the second turns out to need a schema version.
        try await append([upload(0), upload(1).with(\.schema, String(repeating: "0", count: 32))], to: log)
        // The partitions whose offsets are committed, then `nil`.
        let facts = AsyncStream.makeStream(of: Int?.self)
        let isFirst = Atomic(true)
        let service = service(log) { event in
            switch event {
            case .admitted(2, _) where isFirst.exchange(false, ordering: .relaxed): cluster.goDown()
            case .restarting(2, _, _): cluster.comeUp()
            case .committed(let partition, _, _): facts.continuation.yield(partition)
            default: break
            }
        }
        let running = Task {
            defer { facts.continuation.yield(nil) }
            try await service.run()
        }
        var ends = facts.stream.makeAsyncIterator()
        try #require(await ends.next() == 2)
        try await append([upload(2).with(\.caller, "eve")], to: log)
        try #require(await ends.next() == 0)
        running.cancel()
        try await running.value
        await log.close()
    }

    /// The queue of a producer is full, and no broker empties it.
    @Test func aRunThatWaitsForRoomEndsWhenItIsCancelled() async throws {
        let cluster = MockCluster()
        let log = try await cluster.openLog(partitions: 4, queueBytes: 1000)
        let text = String(repeating: "x", count: 2000)
        try await append(
            (0..<8).map { Upload([#"{"table":"note","id":"\#($0)","syncId":"bob","body":"\#(text)"}"#]) }, to: log)
        let (admitted, continuation) = AsyncStream.makeStream(of: Void.self)
        let service = service(log) { event in
            guard case .admitted = event else { return }
            cluster.goDown()
            continuation.yield()
        }
        let running = Task { try await service.run() }
        // The records are enqueued next.
        for await _ in admitted { break }
        running.cancel()
        try await running.value
        cluster.comeUp()
        await log.close()
    }
}
