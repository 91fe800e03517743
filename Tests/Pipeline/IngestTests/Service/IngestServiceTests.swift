import ChangeLog
import Configuration
import Foundation
import Ingest
import Metrics
import PartitionSupervision
import SyncModel
import SyncWire
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(5))) struct IngestServiceTests {
    let log = TestLog()
    let clock = TestClock()
    let events = Events()

    func service(
        clock: TestClock? = nil, stepBytes: Int = 1, schemas: KnownSchemas = KnownSchemas(Fixture.schemas)
    ) -> Task<Void, any Error> {
        let service = IngestService(
            StageContext(log: log, history: Fixture.history, schemas: schemas, clock: clock ?? self.clock),
            configuration: IngestConfiguration().with(\.stepBytes, stepBytes), report: events.add)
        return Task { try await service.run() }
    }

    func upload(_ id: Int) -> Upload { Upload([#"{"table":"note","id":"\#(id)","syncId":"bob"}"#]) }

    /// The ids of Bob's rows in the order of `changes`.
    func written() throws -> [String] {
        try log.records(of: .changes).map { try ChangePart(decoding: $0.value) }.flatMap(\.changes).map(\.id.text)
    }

    private static let outage = ChangeLogError(.inputOutput, message: "no leader", isRetriable: true)

    @Test func appendsTheRecordsOfEachBatchAndCommits() async throws {
        for id in 0..<5 { log.upload(upload(id)) }
        log.upload(Upload("[17]").with(\.caller, "eve"))
        let running = service()
        await log.commits.reach(6)
        running.cancel()
        try await running.value
        #expect(try written() == ["0", "1", "2", "3", "4"])
        #expect(log.records(of: .changes).count == 11 && log.records(of: .deadLetters).count == 1)
        #expect(log.committed(2) == 5 && log.committed(0) == 1 && log.committed(1) == nil)
        // A producer and a reader for each partition.
        #expect(log.producersMade.count == 4 && log.closed.count == 8)
    }

    /// On those of all tasks they would delay the small steps of other partitions.
    @Test func largeStepsAreCheckedOnThreadsOfTheirOwn() async throws {
        let names = Mutex<[String]>([])
        let service = IngestService(
            StageContext(log: log, history: Fixture.history, schemas: KnownSchemas(Fixture.schemas), clock: clock),
            configuration: IngestConfiguration().with(\.stepBytes, 1), threads: 1
        ) { event in
            guard case .admitted = event else { return }
            let name = FileManager.default.contents(atPath: "/proc/thread-self/comm") ?? Data()
            names.withLock { $0.append(String(decoding: name, as: UTF8.self)) }
        }
        log.upload(upload(0))
        log.upload(Upload("[" + (0..<3000).map { "\($0)" }.joined(separator: ",") + "]"))
        log.upload(upload(1))
        let running = Task { try await service.run() }
        await log.commits.reach(3)
        running.cancel()
        try await running.value
        #expect(names.withLock { $0.map { $0 == "ingest-0\n" } } == [false, true, false])
        #expect(try written() == ["0", "1"])
    }

    @Test func anOwnersDeadLettersStayWithinItsQuota() async throws {
        // Each of these causes a dead letter of about 100 bytes.
        for _ in 0..<100 { log.upload(Upload("[17]")) }
        log.upload(Upload("[17]").with(\.caller, "eve"))
        log.upload(Upload("{}"))
        let registry = MetricRegistry()
        let service = IngestService(
            StageContext(log: log, history: Fixture.history, schemas: KnownSchemas(Fixture.schemas), clock: clock),
            configuration: IngestConfiguration().with(\.stepBytes, 1).with(\.deadLetterBytes, 1000),
            metrics: IngestMetrics(registry, partitions: 4), report: events.add)
        let running = Task { try await service.run() }
        await log.commits.reach(102)
        running.cancel()
        try await running.value
        let letters = log.records(of: .deadLetters)
        #expect(letters.count { $0.key == Array("eve".utf8) } == 1)
        let anns = letters.filter { $0.key == Array("ann".utf8) }
        let refused = try anns.map { try DeadLetter(decoding: $0.value) }.count { $0.subject.isOfChanges }
        #expect((5...15).contains(refused) && anns.count == refused + 1)
        #expect(registry.counter(.ingestDroppedDeadLetters).value == 100 - refused)
        // Nothing else is missing: each batch has its part 0.
        #expect(log.records(of: .changes).count == 101)
    }

    @Test func commitsNothingThatTheLogHasNotAcknowledged() async throws {
        log.hold()
        log.upload(upload(0))
        let running = service()
        await log.enqueues.reach(1)
        log.upload(upload(1))
        await log.enqueues.reach(2)
        #expect(log.commits.count == 0 && log.committed(2) == nil)
        log.releaseOne()
        await log.commits.reach(1)
        #expect(log.committed(2) == 1)
        log.release()
        await log.commits.reach(2)
        #expect(log.committed(2) == 2)
        running.cancel()
        try await running.value
    }

    @Test func keepsTwoStepsBeforeTheLogAtMost() async throws {
        log.hold()
        for id in 0..<8 { log.upload(upload(id)) }
        let running = service()
        for step in 1...6 {
            await log.enqueues.reach(step + 1)
            log.releaseOne()
        }
        log.release()
        await log.commits.reach(8)
        #expect(log.change { $0.mostPending } == 2)
        #expect(try written() == (0..<8).map(String.init))
        running.cancel()
        try await running.value
    }

    @Test func takesManyRecordsIntoOneStep() async throws {
        for id in 0..<8 { log.upload(upload(id)) }
        let running = service(stepBytes: 1 << 20)
        await log.commits.reach(1)
        #expect(log.committed(2) == 8 && log.enqueues.count == 1)
        running.cancel()
        try await running.value
    }

    @Test func startsAgainFromTheCommittedOffsetWithAnotherProducer() async throws {
        for id in 0..<4 { log.upload(upload(id)) }
        log.change { $0.faults = [nil, Self.outage] }
        let running = service()
        await log.commits.reach(4)
        running.cancel()
        try await running.value
        // Nothing is missing, nothing overtook the failed one.
        #expect(try written() == ["0", "1", "2", "3"])
        #expect(log.committed(2) == 4 && log.producersMade.count == 5)
        #expect(clock.slept == [.milliseconds(100)] && events.restarts == [Self.outage])
        #expect(log.closed.count == 10)
    }

    @Test func waitsLongerAfterEachFailureInARow() async throws {
        for id in 0..<2 { log.upload(upload(id)) }
        log.change { $0.faults = Array(repeating: Self.outage, count: 9) + [nil, Self.outage] }
        let running = service()
        await log.commits.reach(2)
        running.cancel()
        try await running.value
        #expect(
            clock.slept == [
                .milliseconds(100), .milliseconds(200), .milliseconds(400), .milliseconds(800), .milliseconds(1600),
                .milliseconds(3200), .milliseconds(6400), .seconds(10), .seconds(10), .milliseconds(100),
            ])
        #expect(try written() == ["0", "1"])
    }

    @Test func startsAgainWhenACommitFailed() async throws {
        log.change { $0.commitFaults = [Self.outage] }
        log.upload(upload(0))
        let running = service()
        await log.commits.reach(2)
        running.cancel()
        try await running.value
        // The log had it already; ordering drops the repetition.
        #expect(try written() == ["0", "0"] && log.committed(2) == 1)
    }

    @Test func repeatsTheSameRecordsFromTheCommittedOffset() async throws {
        for id in 0..<3 { log.upload(upload(id)) }
        log.upload(Upload("[1]"))
        log.change { $0.forgetsCommits = true }
        let first = service()
        await log.commits.reach(4)
        first.cancel()
        try await first.value
        log.change { $0.forgetsCommits = false }
        let second = service()
        await log.commits.reach(8)
        second.cancel()
        try await second.value
        for topic in [Topic.changes, .deadLetters] {
            for partition in 0..<4 {
                let records = log.change { $0.records[TopicPartition(topic, partition)] ?? [] }.map(\.value)
                #expect(records.prefix(records.count / 2) == records.suffix(records.count / 2))
            }
        }
        #expect(try written() == ["0", "1", "2", "0", "1", "2"])
    }

    @Test func settlesWhatTheLogHasBeforeItWhenToldToEnd() async throws {
        log.hold()
        log.upload(upload(0))
        let running = service()
        await log.enqueues.reach(1)
        running.cancel()
        log.release()
        try await running.value
        #expect(try written() == ["0"] && log.committed(2) == 1)
    }

    @Test func reportsWhatItCouldNotCommitWhenToldToEnd() async throws {
        log.hold()
        log.upload(upload(0))
        let running = service()
        await log.enqueues.reach(1)
        running.cancel()
        log.change { $0.faults = [Self.outage] }
        log.release()
        try await running.value
        #expect(log.committed(2) == nil && events.uncommitted == [2] && clock.slept.isEmpty)
    }

    @Test func endsWhileItWaitsToStartAgain() async throws {
        let clock = TestClock(isStuck: true)
        log.upload(upload(0))
        log.change { $0.faults = [Self.outage] }
        let running = service(clock: clock)
        await clock.sleeps.reach(1)
        running.cancel()
        try await running.value
        #expect(log.committed(2) == nil)
    }

    @Test func startsAtTheEarliestRecordWithoutACommittedOffset() async throws {
        log.change { $0.starts[TopicPartition(.uploads, 2)] = 5 }
        log.upload(upload(0))
        let running = service()
        await log.commits.reach(1)
        #expect(log.committed(2) == 6)
        running.cancel()
        try await running.value
    }

    @Test func reportsWhatItChecked() async throws {
        log.upload(Upload([#"{"table":"note","id":"1"}"#, "2", #"{"table":"note","id":"3","syncId":"zoe"}"#]))
        log.upload(Upload("{}"))
        let running = service(stepBytes: 1 << 20)
        await log.commits.reach(1)
        running.cancel()
        try await running.value
        #expect(events.refusedRecords == [UploadReference(partition: 2, offset: 1)])
        let counts = try #require(events.counts.first)
        #expect(events.counts.count == 1 && counts.records == 2 && counts.changes == 3)
        #expect(counts.refusals == [.invalidChange: 1, .notGranted: 1])
    }
}
