import ChangeLog
import Configuration
import Ingest
import Metrics
import PartitionSupervision
import SyncModel
import Testing

/// What the stage counts.
@Suite(.timeLimit(.minutes(5))) struct MetricsTests {
    private let registry = MetricRegistry()
    private let log = TestLog()

    private func refused(_ code: RefusalCode) -> Int {
        registry.counter(.ingestRefusedChanges, [.reason: code.rawValue]).value
    }

    @Test func countsWhatItCheckedAndWhereItStands() async throws {
        log.upload(Upload([#"{"table":"note","id":"1"}"#, "2", #"{"table":"note","id":"3","syncId":"zoe"}"#]))
        log.upload(Upload("{}"))
        log.upload(Upload("[]").with(\.caller, "eve").with(\.wrongPartition, 2))
        let metrics = IngestMetrics(registry, partitions: Fixture.history.partitions)
        let stepsCommitted = Tally()
        let service = IngestService(
            StageContext(
                log: log, history: Fixture.history, schemas: KnownSchemas(Fixture.schemas), clock: TestClock()),
            configuration: IngestConfiguration().with(\.stepBytes, 1 << 20), metrics: metrics
        ) { event in
            if case .committed = event { stepsCommitted.add() }
        }
        let running = Task { try await service.run() }
        await stepsCommitted.reach(1)
        #expect(registry.position(of: .ingest, in: 2).value == 3)
        running.cancel()
        try await running.value
        #expect(registry.counter(.ingestRecords).value == 3)
        #expect(registry.counter(.ingestChanges).value == 3)
        #expect(refused(.invalidChange) == 1)
        #expect(refused(.notGranted) == 1)
        #expect(refused(.valueTooLarge) == 0)
        for code in RecordRefusal.Code.allCases {
            let isMet = code == .malformedChanges || code == .wrongPartition
            let count = registry.counter(.ingestRefusedRecords, [.reason: code.rawValue]).value
            #expect(count == (isMet ? 1 : 0), "\(code)")
        }
        #expect(registry.histogram(.ingestStepRecords).snapshot.sum == 3)
        #expect(registry.histogram(.ingestStepDuration).snapshot.cumulative.last == 1)
        // It works on none any more.
        for partition in 0..<Fixture.history.partitions {
            #expect(registry.position(of: .ingest, in: partition).value == nil)
        }
    }

    @Test func countsRestarts() async throws {
        log.upload(Upload([]))
        log.change { $0.faults = [ChangeLogError(.inputOutput, message: "no leader", isRetriable: true)] }
        let service = IngestService(
            StageContext(
                log: log, history: Fixture.history, schemas: KnownSchemas(Fixture.schemas), clock: TestClock()),
            configuration: IngestConfiguration(),
            metrics: IngestMetrics(registry, partitions: Fixture.history.partitions))
        let running = Task { try await service.run() }
        await log.commits.reach(1)
        running.cancel()
        try await running.value
        #expect(registry.retries(of: .ingest).value == 1)
        #expect(registry.retries(of: .ordering).value == 0)
        #expect(registry.gauge(.ingestPaused, [.partition: "2"]).value == 0)
    }
}
