import AsyncPrimitives
import ChangeLog
import Metrics
import Observability
import PartitionSupervision
import RecordStore
import SyncModel

/// Consumes `changes`, assigns timeStamps and outcomes, publishes to `ordered` and writes the tables (design: stages, 3).
///
/// Any number of processes share the partitions of `changes`. A partition's position is stored with its rows: a worker that
/// takes over resumes there and repeats results that readers have seen and drop (I5).
package struct OrderingService<Log: ChangeLog, Store: RecordStore>: Sendable {
    private let context: StageContext<Log>
    private let store: Store
    private let configuration: OrderingConfiguration
    private let budget: OverlayBudget
    private let metrics: OrderingMetrics
    private let reportFailure: @Sendable (Int, any Error) -> Void

    /// - Parameters:
    ///   - context: its log holds `changes` and `ordered`.
    ///   - store: the tables, prepared for every schema version known.
    ///   - reportFailure: called with each partition that cannot be ordered at the moment and the reason, at each attempt.
    package init(
        _ context: StageContext<Log>, store: Store, configuration: OrderingConfiguration,
        metrics: OrderingMetrics = OrderingMetrics(),
        reportFailure: @escaping @Sendable (Int, any Error) -> Void = { _, _ in }
    ) {
        self.context = context
        self.store = store
        self.configuration = configuration
        budget = OverlayBudget(limit: configuration.overlayBytes)
        self.metrics = metrics
        self.reportFailure = reportFailure
    }

    /// Works until the task is cancelled; what was published by then is written first, unless the tables fail.
    ///
    /// A partition whose next record names an unknown schema version is paused until the version is known. One whose next
    /// record cannot be ordered, or whose tables refuse a row, is stopped; the log has the reason, and the other partitions
    /// continue. Failures that may pass are retried.
    ///
    /// - Throws: what concerns more than a record: ``OrderingError`` when log and tables do not belong together,
    ///   `RecordStoreError`, `ChangeLogError`.
    package func run() async throws {
        try await context.consume(.changes, group: "ordering") { try await work(on: $0.partition.partition) }
    }

    /// Orders one partition outside of any group until something fails or the task is cancelled: for a replay, whose log
    /// fails at its end.
    ///
    /// What was published by then is written first, unless the tables fail. Nothing else may order the partition meanwhile.
    ///
    /// - Throws: what ended it; ``OrderingError`` for a record that cannot be ordered, too.
    package func order(_ partition: Int) async throws {
        try await PartitionWorker(
            partition: partition, context: context, store: store, configuration: configuration, budget: budget,
            metrics: metrics, reportFailure: reportFailure
        ).run()
    }

    private func work(on partition: Int) async throws {
        let metrics = metrics.supervision(of: partition)
        metrics.paused.set(0)
        let supervisor = PartitionSupervisor(
            retries: configuration.retries(context.clock), schemas: context.schemas, metrics: metrics,
            response: Self.response
        ) { report($0, partition) }
        try await supervisor.run { _ in try await order(partition) }
    }

    private func report(_ event: PartitionEvent, _ partition: Int) {
        let (logger, metadata): (Logger, LogMetadata) = (context.logger, [.partition: .integer(partition)])
        switch event {
        case .retrying(let error, _):
            reportFailure(partition, error)
            logger.error("Ordering a partition failed; trying again", metadata, error: error)
        case .awaitingSchema(let error):
            reportFailure(partition, error)
            logger.warning("The partition is paused until its schema version is known", metadata, error: error)
        case .schemaKnown: logger.notice("The partition resumes: its schema version is known", metadata)
        case .partitionStopped(let error):
            reportFailure(partition, error)
            logger.critical("The partition is paused: its next record cannot be processed", metadata, error: error)
        case .stageStopped(let error): reportFailure(partition, error)
        // The partition was taken away: its next worker reports what fails.
        case .cancelled: break
        }
    }

    @Sendable private static func response(to error: any Error) -> FailureResponse {
        switch error {
        case let error as ChangeLogError where error.isRetriable || error.code == .producerFailed: .retry
        // Fenced: another worker has the partition; either this one is about to lose it, or that one is stopping.
        case let error as RecordStoreError where error.isRetriable || error.code == .fenced: .retry
        case let error as RecordStoreError: if case .refusedRow = error.code { .stopPartition } else { .stopStage }
        case OrderingError.paused(_, _, .unknownSchema(let hash)): .awaitSchema { $0[hash] != nil }
        case OrderingError.paused(_, _, .unknownSchemaNumber(let number)): .awaitSchema { $0[number] != nil }
        case OrderingError.unreadableRecord, OrderingError.paused: .stopPartition
        default: .stopStage
        }
    }
}

extension OrderingConfiguration {
    /// A constant pause between attempts.
    func retries(_ clock: any Clock<Duration>) -> RetryPolicy {
        RetryPolicy(delays: retryDelay...retryDelay, clock: clock)
    }
}
