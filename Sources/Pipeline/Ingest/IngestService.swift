import AsyncPrimitives
import ChangeLog
import JSON
import Metrics
import PartitionSupervision
import SyncModel
import ThreadExecutor

/// Consumes `uploads`, checks every change and appends the parts of each batch to `changes` (design: stages, 2).
///
/// Any number of processes share the partitions of `uploads`. After a crash, uncommitted records are processed again, and
/// ordering drops the repetition (I2).
package struct IngestService<Log: ChangeLog>: Sendable {
    private let context: StageContext<Log>
    private let configuration: IngestConfiguration
    private let metrics: IngestMetrics
    private let parsers = JSONParserPool()
    private let report: @Sendable (IngestEvent) -> Void
    private let threads: Int

    /// - Parameters:
    ///   - context: its log holds `uploads`, `changes` and `dead-letters`.
    ///   - metrics: by default those of a registry that is not exported.
    ///   - threads: how many large steps are checked at the same time; by default as many as there are processors.
    ///   - report: called with each event, on any thread.
    package init(
        _ context: StageContext<Log>, configuration: IngestConfiguration, metrics: IngestMetrics? = nil,
        threads: Int = DedicatedThread.processors, report: @escaping @Sendable (IngestEvent) -> Void = { _ in }
    ) {
        let metrics = metrics ?? IngestMetrics(MetricRegistry(), partitions: context.history.partitions)
        self.context = context
        self.configuration = configuration
        self.metrics = metrics
        self.threads = threads
        self.report = { [logger = context.logger] event in
            metrics.record(event)
            event.write(to: logger)
            report(event)
        }
    }

    /// Works until the task is cancelled; what the log has acknowledged by then is committed.
    ///
    /// After a failure of the log that may pass, the partition restarts from its committed offset with a new producer. A
    /// partition whose next record names an unknown schema version is paused until the version is known or the record is left
    /// out; any other that cannot be processed, as when its next record needs a newer worker, is paused and tried again. The other
    /// partitions continue.
    ///
    /// - Throws: `ChangeLogError` of a log that was closed; `ThreadStartError`.
    package func run() async throws {
        let turns = try ThreadTurns<Int>(name: "ingest-", count: threads)
        do {
            try await context.consume(.uploads, group: IngestConfiguration.group) { try await work(on: $0, turns) }
        } catch {
            await turns.close()
            throw error
        }
        await turns.close()
    }

    /// From about the time of a broker's leader change, to a pause that spares a log that is down and still notices its
    /// return soon.
    private static var restartDelay: ClosedRange<Duration> { .milliseconds(100)...(.seconds(10)) }

    /// Works on a partition for as long as it is assigned.
    private func work(on assignment: Assignment, _ turns: ThreadTurns<Int>) async throws {
        let partition = assignment.partition.partition
        let run = PartitionRun(
            context: context, assignment: assignment, configuration: configuration, parsers: parsers, turns: turns,
            report: report)
        let supervisor = PartitionSupervisor(
            "ingest of partition \(partition)", retries: RetryPolicy(delays: Self.restartDelay, clock: context.clock),
            schemas: context.schemas,
            failures: context.failures, metrics: metrics.supervision[partition], response: Self.response
        ) { [report] event in
            if let event = IngestEvent(event, partition: partition) { report(event) }
        }
        try await supervisor.run { progress in
            if let error = await run.run({ progress.made() }) { throw error }
        }
    }

    @Sendable private static func response(to error: any Error) -> FailureResponse {
        switch error {
        case IngestError.unknownSchema(let upload, let hash):
            .awaitSchema { $0.schemas[hash] != nil || $0.skipped[.uploads, upload.partition, upload.offset] != nil }
        // Retried with a new producer, or once a rebalance has settled which member has the partition.
        case let error as ChangeLogError
        where error.isRetriable || error.code == .producerFailed || error.code == .fenced:
            .retry
        case let error as ChangeLogError where error.code == .closed: .stopStage
        default: .pausePartition
        }
    }
}

extension IngestEvent {
    /// What the supervisor of a partition reports; `nil` for a failure that the stage throws.
    fileprivate init?(_ event: PartitionEvent, partition: Int) {
        switch event {
        case .retrying(let cause, let delay): self = .restarting(partition: partition, cause: cause, after: delay)
        case .awaitingSchema(let cause), .paused(let cause): self = .paused(partition: partition, cause: cause)
        case .schemaKnown, .resumed: self = .resumed(partition: partition)
        case .cancelled(let cause): self = .endedUncommitted(partition: partition, cause: cause)
        case .stageStopped: return nil
        }
    }
}
