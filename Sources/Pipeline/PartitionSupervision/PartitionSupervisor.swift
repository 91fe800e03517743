import AsyncPrimitives
import Metrics
import SyncModel
import Synchronization

/// What a failure of a partition's work means for the partition and for the stage.
package enum FailureResponse: Sendable {
    /// The work runs again after a pause: the failure may pass.
    case retry
    /// The work runs again when what is known of `control` meets the condition; no other partition is affected.
    case awaitSchema(_ isKnown: @Sendable (KnownSchemas.Content) -> Bool)
    /// The partition is paused and the work tried again after longer pauses, in case somebody has mended the cause; no other
    /// partition is affected.
    case pausePartition
    /// The failure concerns all partitions: the stage ends with it.
    case stopStage
}

/// What happened to the work on a partition, for log lines and events.
package enum PartitionEvent: Sendable {
    case retrying(any Error, after: Duration)
    case awaitingSchema(any Error)
    /// The schema version that the error lacked is known: the work runs again.
    case schemaKnown(any Error)
    /// Reported again only for another error.
    case paused(any Error)
    /// The work has made progress since it was paused.
    case resumed
    case stageStopped(any Error)
    /// The task was cancelled, and the work failed on its way out.
    case cancelled(any Error)
}

/// The metrics of a partition that its supervisor keeps.
package struct PartitionMetrics: Sendable {
    package let retries: Counter
    /// 1 while the partition waits for a schema version or is paused, else 0.
    package let paused: Gauge
    /// The offset of the next record, which the work sets; `nil` where the stage itself forgets it.
    ///
    /// Unknown while nothing works on the partition here, since it is another process's then.
    package let position: Gauge?

    package init(retries: Counter, paused: Gauge, position: Gauge? = nil) {
        self.retries = retries
        self.paused = paused
        self.position = position
    }
}

/// Tells the supervisor of a partition that its work got further: earlier failures are over.
package final class PartitionProgress: Sendable {
    private let isPaused = Atomic(false)
    private let hasProgressed = Atomic(false)
    /// Whether a failure is recorded for the readiness of the process.
    private let hasFailed = Atomic(false)
    private let paused: Gauge
    private let mended: @Sendable () -> Void
    private let resumed: @Sendable () -> Void

    /// - Parameters:
    ///   - mended: called with the first progress after a recorded failure.
    ///   - resumed: called with the first progress after a pause of the partition.
    fileprivate init(
        _ paused: Gauge, mended: @escaping @Sendable () -> Void, resumed: @escaping @Sendable () -> Void
    ) {
        self.paused = paused
        self.mended = mended
        self.resumed = resumed
    }

    /// Whether the partition is paused, so that this attempt may well fail as the last one did.
    package var isOfPausedPartition: Bool { isPaused.load(ordering: .relaxed) }

    /// Called whenever the work has got past a record.
    package func made() {
        hasProgressed.store(true, ordering: .relaxed)
        if hasFailed.load(ordering: .relaxed), hasFailed.exchange(false, ordering: .relaxed) { mended() }
        guard isPaused.load(ordering: .relaxed), isPaused.exchange(false, ordering: .relaxed) else { return }
        paused.set(0)
        resumed()
    }

    fileprivate func pause() {
        isPaused.store(true, ordering: .relaxed)
        paused.set(1)
    }

    fileprivate func fail() { hasFailed.store(true, ordering: .relaxed) }

    /// Whether there was progress since the last call.
    fileprivate func take() -> Bool { hasProgressed.exchange(false, ordering: .relaxed) }
}

/// Runs the work on one partition, and runs it again after failures that may pass, that somebody may have mended, or once a
/// schema version is known.
package struct PartitionSupervisor: Sendable {
    private let name: String
    private let retries: RetryPolicy
    private let pauses: RetryPolicy
    private let schemas: KnownSchemas
    private let failures: PartitionFailures
    private let isReadyWhileRetrying: Bool
    private let metrics: PartitionMetrics
    private let response: @Sendable (any Error) -> FailureResponse
    private let report: @Sendable (PartitionEvent) -> Void

    /// The first and the longest pause of a paused partition.
    private static let pauseDelays: ClosedRange<Duration> = .seconds(1)...(.seconds(60))

    /// - Parameters:
    ///   - name: the stage and the partition, for the readiness of the process.
    ///   - failures: the failures while they last.
    ///   - isReadyWhileRetrying: whether a failure that may pass is none for the readiness of the process.
    ///   - response: what a failure means.
    ///   - report: called with each event after the metrics were updated, and before the pause or wait that it announces.
    package init(
        _ name: String, retries: RetryPolicy, schemas: KnownSchemas, failures: PartitionFailures,
        isReadyWhileRetrying: Bool = false, metrics: PartitionMetrics,
        response: @escaping @Sendable (any Error) -> FailureResponse,
        report: @escaping @Sendable (PartitionEvent) -> Void
    ) {
        self.name = name
        self.retries = retries
        pauses = RetryPolicy(delays: Self.pauseDelays, clock: retries.clock)
        self.schemas = schemas
        self.failures = failures
        self.isReadyWhileRetrying = isReadyWhileRetrying
        self.metrics = metrics
        self.response = response
        self.report = report
    }

    /// Runs the work until it returns.
    ///
    /// - Parameter work: reports its progress, so that its next failure is retried soon.
    /// - Returns: what the work returned; `nil` where the task was cancelled.
    /// - Throws: a failure for which the stage stops.
    @discardableResult
    package func run<Value>(_ work: (PartitionProgress) async throws -> Value) async throws -> Value? {
        metrics.paused.set(0)
        let progress = PartitionProgress(metrics.paused) { [failures, name] in
            failures.forget(name)
        } resumed: { [report] in
            report(.resumed)
        }
        defer {
            metrics.paused.set(0)
            metrics.position?.forget()
            failures.forget(name)
        }
        var (retry, pause) = (Backoff(retries), Backoff(pauses))
        var pausedBy: String?
        while !Task.isCancelled {
            let failure: any Error
            do {
                return try await work(progress)
            } catch {
                failure = error
            }
            if Task.isCancelled {
                report(.cancelled(failure))
                return nil
            }
            if progress.take() {
                retry.reset()
                pause.reset()
                pausedBy = nil
            }
            do {
                switch response(failure) {
                case .retry:
                    metrics.retries.add()
                    try await retry.pause { delay in
                        if !isReadyWhileRetrying {
                            failures.record(name, failure, pause: delay)
                            progress.fail()
                        }
                        report(.retrying(failure, after: delay))
                    }
                case .awaitSchema(let isKnown):
                    metrics.paused.set(1)
                    failures.record(name, failure, pause: nil)
                    report(.awaitingSchema(failure))
                    try await schemas.wait(until: isKnown)
                    failures.forget(name)
                    metrics.paused.set(0)
                    report(.schemaKnown(failure))
                case .pausePartition:
                    metrics.retries.add()
                    progress.pause()
                    try await pause.pause { delay in
                        failures.record(name, failure, pause: delay)
                        progress.fail()
                        if pausedBy != "\(failure)" { report(.paused(failure)) }
                        pausedBy = "\(failure)"
                    }
                case .stopStage:
                    report(.stageStopped(failure))
                    throw failure
                }
            } catch is CancellationError {
                return nil
            }
        }
        return nil
    }
}
