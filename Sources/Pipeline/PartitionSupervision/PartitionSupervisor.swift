import AsyncPrimitives
import Metrics
import SyncModel

/// What a failure of a partition's work means for the partition and for the stage.
package enum FailureResponse: Sendable {
    /// The work runs again after a pause: the failure may pass.
    case retry
    /// The work runs again when the schema versions known meet the condition; no other partition is affected.
    case awaitSchema(_ isKnown: @Sendable (SchemaHistory) -> Bool)
    /// The partition is left as it is, until a rebalance or a restart; the other partitions continue.
    case stopPartition
    /// The failure concerns all partitions: the stage ends with it.
    case stopStage
}

/// What happened to the work on a partition, for log lines and events.
package enum PartitionEvent: Sendable {
    case retrying(any Error, after: Duration)
    case awaitingSchema(any Error)
    /// The schema version that the error lacked is known: the work runs again.
    case schemaKnown(any Error)
    case partitionStopped(any Error)
    case stageStopped(any Error)
    /// The task was cancelled, and the work failed on its way out.
    case cancelled(any Error)
}

/// The metrics of a partition that its supervisor keeps.
package struct PartitionMetrics: Sendable {
    package let retries: Counter
    /// 1 while the partition waits for a schema version or is stopped, else 0.
    package let paused: Gauge

    package init(retries: Counter, paused: Gauge) {
        self.retries = retries
        self.paused = paused
    }
}

/// Runs the work on one partition, and runs it again after failures that may pass or once a schema version is known.
package struct PartitionSupervisor: Sendable {
    private let retries: RetryPolicy
    private let schemas: KnownSchemas
    private let metrics: PartitionMetrics
    private let response: @Sendable (any Error) -> FailureResponse
    private let report: @Sendable (PartitionEvent) -> Void

    /// - Parameters:
    ///   - response: what a failure means.
    ///   - report: called with each event after the metrics were updated, and before the pause or wait that it announces.
    package init(
        retries: RetryPolicy, schemas: KnownSchemas, metrics: PartitionMetrics,
        response: @escaping @Sendable (any Error) -> FailureResponse,
        report: @escaping @Sendable (PartitionEvent) -> Void
    ) {
        self.retries = retries
        self.schemas = schemas
        self.metrics = metrics
        self.response = response
        self.report = report
    }

    /// Runs the work until it returns.
    ///
    /// - Parameter work: resets the backoff when it makes progress, so that its next failure is retried soon.
    /// - Returns: what the work returned; `nil` where the partition was stopped or the task was cancelled.
    /// - Throws: a failure for which the stage stops.
    @discardableResult
    package func run<Value>(_ work: (inout Backoff) async throws -> Value) async throws -> Value? {
        var backoff = Backoff(retries)
        while !Task.isCancelled {
            let failure: any Error
            do {
                return try await work(&backoff)
            } catch {
                failure = error
            }
            if Task.isCancelled {
                report(.cancelled(failure))
                return nil
            }
            switch response(failure) {
            case .retry:
                metrics.retries.add()
                do {
                    try await backoff.pause { report(.retrying(failure, after: $0)) }
                } catch {
                    return nil
                }
            case .awaitSchema(let isKnown):
                metrics.paused.set(1)
                report(.awaitingSchema(failure))
                do {
                    try await schemas.wait(until: isKnown)
                } catch {
                    return nil
                }
                metrics.paused.set(0)
                report(.schemaKnown(failure))
            case .stopPartition:
                metrics.paused.set(1)
                report(.partitionStopped(failure))
                return nil
            case .stopStage:
                report(.stageStopped(failure))
                throw failure
            }
        }
        return nil
    }
}
