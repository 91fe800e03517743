import AsyncPrimitives
import ChangeLog
import SyncModel

/// Consumes `uploads`, checks every change and appends the parts of each batch to `changes` (design: stages, 2).
///
/// Any number of processes share the partitions of `uploads`. What a crash leaves uncommitted is done again, and ordering
/// drops the repetition (I2).
package struct IngestService<Log: ChangeLog>: Sendable {
    /// The group's name in the log.
    package static var group: String { "ingest" }

    private let log: Log
    private let history: History
    private let limits: SyncLimits
    private let configuration: IngestConfiguration
    private let clock: any Clock<Duration>
    private let schemas: @Sendable () -> SchemaHistory
    private let schemaWait: SchemaWait
    private let report: @Sendable (IngestEvent) -> Void

    /// Makes the stage.
    ///
    /// - Parameters:
    ///   - log: where `uploads` is read and `changes` and `dead-letters` are written.
    ///   - history: the history that the topics hold.
    ///   - limits: what a batch may hold; the gateways enforce the same.
    ///   - configuration: the stage's own settings.
    ///   - clock: measures the time before a partition starts again.
    ///   - schemas: the versions known at the time of the call, asked for each step.
    ///   - schemaWait: waits for versions to become known; those that `schemas` knows then.
    ///   - report: told what happens, from any thread; ``IngestEvent/write(to:)`` makes log lines of it.
    package init(
        log: Log, history: History, limits: SyncLimits, configuration: IngestConfiguration,
        clock: any Clock<Duration> = ContinuousClock(), schemas: @escaping @Sendable () -> SchemaHistory,
        schemaWait: @escaping SchemaWait = SchemaHistory.noFurtherVersions,
        report: @escaping @Sendable (IngestEvent) -> Void
    ) {
        self.log = log
        self.history = history
        self.limits = limits
        self.configuration = configuration
        self.clock = clock
        self.schemas = schemas
        self.schemaWait = schemaWait
        self.report = report
    }

    /// Works until the task is cancelled; what the log took by then is committed.
    ///
    /// Where the log fails in a way that may pass, the partition starts again from its committed offset with another
    /// producer. A partition whose next record names a schema version that is not known stands still until it is; one whose next
    /// record needs something newer than this worker is left as it is. The others go on.
    ///
    /// - Throws: ``IngestError/positionOutOfRange(_:_:)``, and ``ChangeLog/ChangeLogError`` where trying again cannot help.
    package func run() async throws {
        let membership = try await log.join(group: Self.group, topic: .uploads)
        let result = await Result.capturing { try await membership.run { try await work(on: $0) } }
        await membership.leave()
        do {
            try result.get()
        } catch is CancellationError where Task.isCancelled {
            return
        }
    }

    /// From about what a broker's change of leader takes, to what spares a log that is down and still notices its return soon.
    private static var restartDelay: ClosedRange<Duration> { .milliseconds(100)...(.seconds(10)) }

    /// Works on a partition for as long as it is assigned.
    private func work(on assignment: Assignment) async throws {
        let partition = assignment.partition.partition
        let run = PartitionRun(
            log: log, assignment: assignment, history: history, limits: limits, stepBytes: configuration.stepBytes,
            schemas: schemas, report: report)
        var backoff = Backoff(RetryPolicy(delays: Self.restartDelay, clock: clock))
        while !Task.isCancelled {
            let ending = await run.run()
            guard let error = ending.error else { return }
            // Whoever gets the partition next starts from the committed offset, too.
            if Task.isCancelled { return report(.endedUncommitted(partition: partition, cause: error)) }
            if let pause = error as? IngestError, pause.concernsRecord {
                report(.paused(partition: partition, cause: pause))
                guard case .unknownSchema(_, let hash) = pause else { return }
                try await schemaWait { $0[hash] != nil }
                report(.resumed(partition: partition, schema: hash))
                continue
            }
            guard let cause = error as? ChangeLogError, cause.mayPass else { throw error }
            if ending.committed > 0 { backoff.reset() }
            do {
                try await backoff.pause { report(.restarting(partition: partition, cause: cause, after: $0)) }
            } catch {
                // Told to end while it waited.
                return
            }
        }
    }
}

extension ChangeLogError {
    /// Whether another try may succeed: with another producer, or when a rebalance has said whose the partition is.
    fileprivate var mayPass: Bool { isRetriable || code == .producerFailed || code == .fenced }
}
