import AsyncPrimitives
import ChangeLog
import Metrics
import Observability
import RecordStore
import SyncModel

/// Consumes `changes`, gives timeStamps and outcomes, publishes to `ordered` and writes the tables (design: stages, 3).
///
/// Any number of processes share the partitions of `changes`. Where a partition stands is kept with its rows: a worker that
/// takes over goes on from there and repeats results that readers have seen and drop (I5).
package struct OrderingService<Log: ChangeLog, Store: RecordStore>: Sendable {
    private let log: Log
    private let store: Store
    private let history: History
    private let schemas: @Sendable () -> SchemaHistory
    private let schemaWait: SchemaWait
    private let configuration: OrderingConfiguration
    private let room: OverlayBudget
    private let clock: any Clock<Duration>
    private let logger: Logger
    private let hasFailed: @Sendable (Int, any Error) -> Void
    private let metrics: OrderingMetrics

    /// Makes the stage.
    ///
    /// - Parameters:
    ///   - log: where `changes` is read and `ordered` written.
    ///   - store: the tables, prepared for every schema version known.
    ///   - history: the history that both hold.
    ///   - schemas: the versions known at the time of the call.
    ///   - schemaWait: waits for versions to become known; those that `schemas` knows then.
    ///   - configuration: the stage's own settings.
    ///   - clock: measures the pauses between attempts.
    ///   - logger: says what stops a partition.
    ///   - metrics: what is counted.
    ///   - hasFailed: told of each partition that something keeps from being ordered, each time.
    package init(
        log: Log, store: Store, history: History, schemas: @escaping @Sendable () -> SchemaHistory,
        schemaWait: @escaping SchemaWait = SchemaHistory.noFurtherVersions,
        configuration: OrderingConfiguration, clock: any Clock<Duration> = ContinuousClock(), logger: Logger,
        metrics: OrderingMetrics = OrderingMetrics(),
        hasFailed: @escaping @Sendable (Int, any Error) -> Void = { _, _ in }
    ) {
        self.log = log
        self.store = store
        self.history = history
        self.schemas = schemas
        self.schemaWait = schemaWait
        self.configuration = configuration
        room = OverlayBudget(limit: configuration.overlayBytes)
        self.clock = clock
        self.logger = logger
        self.hasFailed = hasFailed
        self.metrics = metrics
    }

    /// Works until the task is cancelled; what was published by then is written first.
    ///
    /// A partition whose next message names a schema version that is not known stands still until it is. One whose next
    /// message cannot be ordered, or whose tables refuse a row, is left as it is. The log says why, and the others go on.
    /// What may pass is tried again.
    ///
    /// - Throws: what concerns more than a message: ``OrderingError`` when log and tables do not belong together,
    ///   `RecordStoreError`, `ChangeLogError`.
    package func run() async throws {
        let membership = try await log.join(group: "ordering", topic: .changes)
        let result = await Result.capturing {
            try await membership.run { assignment in try await work(on: assignment.partition.partition) }
        }
        await membership.leave()
        try result.get()
    }

    /// Orders one partition outside of any group until something fails or the task is cancelled: for a replay, whose log
    /// fails at its end.
    ///
    /// What was published by then is written first. Nothing else may order the partition meanwhile.
    ///
    /// - Throws: what ended it; ``OrderingError`` for a message that cannot be ordered, too.
    package func order(_ partition: Int) async throws {
        try await PartitionWorker(
            partition: partition, log: log, store: store, history: history, schemas: schemas,
            configuration: configuration, room: room, clock: clock, logger: logger, metrics: metrics,
            hasFailed: hasFailed
        ).run()
    }

    /// Orders a partition, again and again where what failed may pass.
    private func work(on partition: Int) async throws {
        let paused = metrics.paused(partition)
        paused.set(0)
        while !Task.isCancelled {
            do {
                return try await order(partition)
            } catch {
                // A partition that was taken away has somebody else to tell.
                if Task.isCancelled { throw error }
                hasFailed(partition, error)
                switch Failure(error) {
                case .mayPass:
                    metrics.retries.add()
                    logger.error(
                        "Ordering a partition failed and is tried again", [.partition: .integer(partition)],
                        error: error)
                case .ofSchema(let isKnown):
                    paused.set(1)
                    logger.warning(
                        "A partition is paused until its schema version is known",
                        [.partition: .integer(partition)], error: error)
                    try await schemaWait(isKnown)
                    paused.set(0)
                    logger.notice(
                        "A partition goes on: its schema version is known", [.partition: .integer(partition)])
                    continue
                case .ofMessage:
                    paused.set(1)
                    logger.critical("A partition is paused", [.partition: .integer(partition)], error: error)
                    return
                case .ofStage:
                    throw error
                }
            }
            try await clock.sleep(for: configuration.retryDelay)
        }
    }
}

/// What a worker's failure means for its partition and the others.
private enum Failure {
    /// The same work may succeed later.
    case mayPass
    /// The partition waits for a schema version; no other partition is concerned.
    case ofSchema(isKnown: @Sendable (SchemaHistory) -> Bool)
    /// The partition cannot get past a message; no other partition is concerned.
    case ofMessage
    /// Nothing can be ordered until somebody acts.
    case ofStage

    init(_ error: any Error) {
        switch error {
        case let error as ChangeLogError where error.isRetriable || error.code == .producerFailed: self = .mayPass
        case let error as RecordStoreError where error.isRetriable: self = .mayPass
        // Another worker has the partition: either this one is about to lose it, or that one has been told to end.
        case let error as RecordStoreError where error.code == .fenced: self = .mayPass
        case let error as RecordStoreError: self = error.concernsRow ? .ofMessage : .ofStage
        case OrderingError.paused(_, _, .unknownSchema(let hash)): self = .ofSchema { $0[hash] != nil }
        case OrderingError.paused(_, _, .unknownSchemaNumber(let number)): self = .ofSchema { $0[number] != nil }
        case OrderingError.unreadableRecord, OrderingError.paused: self = .ofMessage
        default: self = .ofStage
        }
    }
}

extension RecordStoreError {
    fileprivate var concernsRow: Bool {
        if case .refusedRow = code { true } else { false }
    }
}
