import Metrics
import SyncModel

/// What the stage counts, from the events that it reports.
package struct IngestMetrics: Sendable {
    private let records: Counter
    private let changes: Counter
    private let refusedChanges: [RefusalCode: Counter]
    private let refusedRecords: [RecordRefusal.Code: Counter]
    private let stepRecords: Histogram
    private let stepDuration: Histogram
    private let retries: Counter
    private let positions: [Gauge]
    private let paused: [Gauge]

    /// Takes the numbers from a registry, with a position for each partition of the history.
    package init(_ registry: MetricRegistry, partitions: Int) {
        records = registry.counter(.ingestRecords)
        changes = registry.counter(.ingestChanges)
        refusedChanges = Dictionary(
            uniqueKeysWithValues: RefusalCode.allCases.map {
                ($0, registry.counter(.ingestRefusedChanges, [.reason: $0.rawValue]))
            })
        refusedRecords = Dictionary(
            uniqueKeysWithValues: RecordRefusal.Code.allCases.map {
                ($0, registry.counter(.ingestRefusedRecords, [.reason: $0.rawValue]))
            })
        stepRecords = registry.histogram(.ingestStepRecords)
        stepDuration = registry.histogram(.ingestStepDuration)
        retries = registry.retries(of: .ingest)
        positions = (0..<partitions).map { registry.position(of: .ingest, in: $0) }
        paused = (0..<partitions).map { registry.gauge(.ingestPaused, [.partition: "\($0)"]) }
    }

    /// Counts an event; some atomic adds for each step, whatever it holds.
    package func note(_ event: IngestEvent) {
        switch event {
        case .started(let partition, let nextOffset):
            positions[partition].set(Int(nextOffset))
            paused[partition].set(0)
        case .admitted(_, let counts):
            records.add(counts.records)
            changes.add(counts.changes)
            stepRecords.record(counts.records)
            for (code, count) in counts.refusals { refusedChanges[code]?.add(count) }
        case .committed(let partition, let nextOffset, let duration):
            positions[partition].set(Int(nextOffset))
            stepDuration.record(duration)
        case .recordRefused(_, let refusal): refusedRecords[refusal.code]?.add()
        case .restarting: retries.add()
        case .paused(let partition, _): paused[partition].set(1)
        case .resumed(let partition, _): paused[partition].set(0)
        case .endedUncommitted: break
        }
    }
}
