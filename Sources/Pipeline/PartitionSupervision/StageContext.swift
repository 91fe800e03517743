import AsyncPrimitives
import ChangeLog
import Observability
import SyncModel

/// What a stage needs of its process, whatever the stage does.
package struct StageContext<Log: ChangeLog>: Sendable {
    package let log: Log
    /// The history that the topics and the tables hold.
    package let history: History
    /// The schema versions known, which may become more while the stage runs.
    package let schemas: KnownSchemas
    /// The failures that keep partitions from being worked on, while they last.
    package let failures: PartitionFailures
    /// Measures pauses between attempts and waits.
    package let clock: any Clock<Duration>
    package let logger: Logger

    package init(
        log: Log, history: History, schemas: KnownSchemas, failures: PartitionFailures = PartitionFailures(),
        clock: any Clock<Duration> = ContinuousClock(), logger: Logger = .disabled
    ) {
        self.log = log
        self.history = history
        self.schemas = schemas
        self.failures = failures
        self.clock = clock
        self.logger = logger
    }
}

extension StageContext {
    /// How long the log may take for what is enqueued once the work on a partition ends, and the tables for what the log has.
    ///
    /// What they do not take by then is made again by the partition's next worker: brokers and databases that do not answer must
    /// delay neither that one nor the end of the process.
    package static var releaseLimit: Duration { .seconds(5) }

    /// Enqueues records; once the task is cancelled the producer is closed, so that nobody waits for room in a queue that no broker
    /// empties.
    package static func enqueue(
        _ records: [NewRecord], to producer: Log.Producer
    ) async throws(ChangeLogError) -> AppendReceipt {
        let result: Result<AppendReceipt, ChangeLogError> = await withTaskCancellationHandler {
            do throws(ChangeLogError) {
                return .success(try await producer.enqueue(records))
            } catch {
                return .failure(error)
            }
        } onCancel: {
            Task { await producer.close(within: releaseLimit) }
        }
        return try result.get()
    }

    /// Runs a worker for each partition of a topic that is assigned to this member of a group, until the task is cancelled;
    /// then leaves the group.
    ///
    /// - Throws: what a worker threw, `ChangeLogError`.
    package func consume(
        _ topic: Topic, group: String, _ worker: @escaping @Sendable (Assignment) async throws -> Void
    ) async throws {
        let membership = try await log.join(group: group, topic: topic)
        let result = await Result.capturing { try await membership.run(worker) }
        await membership.leave()
        do {
            try result.get()
        } catch is CancellationError where Task.isCancelled {
            return
        }
    }
}
