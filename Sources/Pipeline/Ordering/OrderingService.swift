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
    private let largeParts = LargePartTurns()
    private let metrics: OrderingMetrics

    /// - Parameters:
    ///   - context: its log holds `changes` and `ordered`.
    ///   - store: the tables, prepared for every schema version known.
    package init(
        _ context: StageContext<Log>, store: Store, configuration: OrderingConfiguration,
        metrics: OrderingMetrics = OrderingMetrics()
    ) {
        self.context = context
        self.store = store
        self.configuration = configuration
        budget = OverlayBudget(limit: configuration.overlayBytes, partitions: context.history.partitions)
        self.metrics = metrics
    }

    /// Works until the task is cancelled; what was published by then is written first, unless the tables fail.
    ///
    /// A partition whose next record names an unknown schema version is paused until the version is known. Any other that cannot
    /// be ordered, as when its tables refuse a row or do not belong to its log, is paused and tried again; the log has the reason,
    /// and the other partitions continue.
    ///
    /// - Throws: `ChangeLogError` and `RecordStoreError` of a log or tables that were closed.
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
        try await order(partition, isCautious: false) {}
    }

    private func order(
        _ partition: Int, isCautious: Bool, hasProgressed: @escaping @Sendable () -> Void
    ) async throws {
        try await PartitionWorker(
            partition: partition, context: context, store: store, configuration: configuration, budget: budget,
            largeParts: largeParts, metrics: metrics, isCautious: isCautious, hasProgressed: hasProgressed
        ).run()
    }

    private func work(on partition: Int) async throws {
        let supervisor = PartitionSupervisor(
            PartitionWorker<Log, Store>.name(partition), retries: configuration.retries(context.clock),
            schemas: context.schemas, failures: context.failures, metrics: metrics.supervision(of: partition),
            response: Self.response
        ) { report($0, partition) }
        try await supervisor.run { progress in
            try await order(partition, isCautious: progress.isOfPausedPartition) { progress.made() }
        }
    }

    private func report(_ event: PartitionEvent, _ partition: Int) {
        let (logger, metadata): (Logger, LogMetadata) = (context.logger, [.partition: .integer(partition)])
        switch event {
        case .retrying(let error, _):
            logger.error("Ordering a partition failed; trying again", metadata, error: error)
        case .awaitingSchema(let error):
            logger.warning("The partition is paused until its schema version is known", metadata, error: error)
        case .schemaKnown: logger.notice("The partition resumes: its schema version is known", metadata)
        case .paused(let error):
            logger.critical(
                "The partition is paused and tried again: its next record cannot be processed", metadata, error: error)
        case .resumed: logger.notice("The partition resumes: its next record was processed", metadata)
        // The process ends with it, or the partition was taken away: its next worker reports what fails.
        case .stageStopped, .cancelled: break
        }
    }

    @Sendable private static func response(to error: any Error) -> FailureResponse {
        switch error {
        case let error as ChangeLogError where error.isRetriable || error.code == .producerFailed: .retry
        // Fenced: another worker has the partition; either this one is about to lose it, or that one is stopping.
        case let error as RecordStoreError where error.isRetriable || error.code == .fenced: .retry
        case OrderingError.paused(_, _, .unknownSchema(let hash)): .awaitSchema { $0.schemas[hash] != nil }
        case OrderingError.paused(_, _, .unknownSchemaNumber(let number)): .awaitSchema { $0.schemas[number] != nil }
        case let error as ChangeLogError where error.code == .closed: .stopStage
        case let error as RecordStoreError where error.code == .closed: .stopStage
        default: .pausePartition
        }
    }
}

extension OrderingConfiguration {
    /// A constant pause between attempts.
    func retries(_ clock: any Clock<Duration>) -> RetryPolicy {
        RetryPolicy(delays: retryDelay...retryDelay, clock: clock)
    }
}
