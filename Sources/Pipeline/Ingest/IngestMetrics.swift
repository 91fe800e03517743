import Metrics
import PartitionSupervision
import SyncModel

/// The metrics of the stage, updated from its events.
package struct IngestMetrics: Sendable {
    private let records: Counter
    private let changes: Counter
    private let refusedChanges: [RefusalCode: Counter]
    private let refusedRecords: [RecordRefusal.Code: Counter]
    private let droppedDeadLetters: Counter
    private let stepRecords: Histogram
    private let stepDuration: Histogram
    private let positions: [Gauge]
    /// By partition; updated by its supervisor.
    let supervision: [PartitionMetrics]

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
        droppedDeadLetters = registry.counter(.ingestDroppedDeadLetters)
        stepRecords = registry.histogram(.ingestStepRecords)
        stepDuration = registry.histogram(.ingestStepDuration)
        let retries = registry.retries(of: .ingest)
        let positions = (0..<partitions).map { registry.position(of: .ingest, in: $0) }
        self.positions = positions
        supervision = positions.enumerated().map { partition, position in
            PartitionMetrics(
                retries: retries, paused: registry.gauge(.ingestPaused, [.partition: "\(partition)"]),
                position: position)
        }
    }

    /// A few atomic additions for each step, whatever its size.
    package func record(_ event: IngestEvent) {
        switch event {
        case .started(let partition, let nextOffset):
            positions[partition].set(Int(nextOffset))
        case .admitted(_, let counts):
            records.add(counts.records)
            changes.add(counts.changes)
            droppedDeadLetters.add(counts.droppedDeadLetters)
            stepRecords.record(counts.records)
            for (code, count) in counts.refusals { refusedChanges[code]?.add(count) }
        case .committed(let partition, let nextOffset, let duration):
            positions[partition].set(Int(nextOffset))
            stepDuration.record(duration)
        case .recordRefused(_, let refusal): refusedRecords[refusal.code]?.add()
        case .restarting, .paused, .resumed, .endedUncommitted: break
        }
    }
}
