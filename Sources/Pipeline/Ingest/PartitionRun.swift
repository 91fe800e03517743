import ChangeLog
import JSON
import PartitionSupervision
import SyncModel
import ThreadExecutor

/// One run of a partition with one producer: from the committed offset until the log fails or the task is cancelled.
///
/// While the log makes one step durable the next one is checked. An offset is committed after the log has every part of the
/// records before it (I1).
struct PartitionRun<Log: ChangeLog>: Sendable {
    /// Records of `changes` and `dead-letters` that were enqueued.
    private struct Step: Sendable {
        let receipt: AppendReceipt
        /// The offset to commit when they are durable.
        let next: Int64
        /// When the records were read.
        let start: ContinuousClock.Instant
    }

    /// Steps that may be enqueued: one that the log writes, and the next, which it can begin without a pause.
    private static var maximumSteps: Int { 2 }

    let context: StageContext<Log>
    let assignment: Assignment
    let configuration: IngestConfiguration
    let parsers: JSONParserPool
    let turns: ThreadTurns<Int>
    let report: @Sendable (IngestEvent) -> Void

    var log: Log { context.log }
    var partition: TopicPartition { assignment.partition }

    /// Works until the task is cancelled or something fails; what the log took by then is committed.
    ///
    /// - Parameter hasCommitted: called after each step.
    /// - Returns: why it ended; `nil` after a cancellation.
    func run(_ hasCommitted: @escaping @Sendable () -> Void) async -> (any Error)? {
        let reader: Log.Reader
        let producer: Log.Producer
        do {
            reader = try await makeReader()
        } catch {
            return error
        }
        do {
            producer = try await log.producer()
        } catch {
            await reader.close()
            return error
        }
        let failure = await work(from: reader, to: producer, hasCommitted)
        await reader.close()
        return failure
    }

    private func work(
        from reader: Log.Reader, to producer: Log.Producer, _ hasCommitted: @escaping @Sendable () -> Void
    ) async -> (any Error)? {
        // Bounded by `maximumSteps`: each step takes a permit before it is read.
        let (steps, newSteps) = AsyncStream.makeStream(of: Step.self)
        let (permits, returnPermit) = AsyncStream.makeStream(of: Void.self)
        for _ in 0..<Self.maximumSteps { returnPermit.yield() }
        // Not a child task: what was enqueued is settled although this task is cancelled.
        let settlement = Task { await settle(steps, returning: returnPermit, hasCommitted) }
        return await withTaskGroup(of: Ending.self) { group in
            group.addTask {
                var failure: (any Error)?
                do {
                    try await admit(from: reader, to: producer, taking: permits) { newSteps.yield($0) }
                } catch {
                    failure = Task.isCancelled ? nil : error
                }
                newSteps.finish()
                // Settling waits for what is enqueued.
                await producer.close(within: StageContext<Log>.releaseLimit)
                return .admitting(failure)
            }
            group.addTask { .settling(await settlement.value) }
            var admitting: (any Error)?
            var settling: (any Error)?
            for await ending in group {
                switch ending {
                case .admitting(let failure): admitting = failure
                case .settling(let failure): settling = failure
                }
                // When one part ends, the other has nothing more to do but to finish.
                group.cancelAll()
            }
            // A failed append makes every later one fail, and its receipt has the cause. It also comes before a record that must
            // wait: those before that one need not.
            return settling ?? admitting
        }
    }

    /// Why one of the two tasks of a run ended.
    private enum Ending: Sendable {
        case admitting((any Error)?)
        case settling((any Error)?)
    }

    /// Reads, checks and enqueues.
    private func admit(
        from reader: Log.Reader, to producer: Log.Producer, taking permits: AsyncStream<Void>,
        _ enqueued: (Step) -> Void
    ) async throws {
        let admission = PartitionAdmission(
            of: partition.partition, history: context.history, schemas: context.schemas, parsers: parsers, turns: turns,
            configuration: configuration, report: report)
        for await _ in permits {
            let records = try await reader.next(maximumBytes: configuration.stepBytes)
            let start = ContinuousClock.now
            let step = await admission.admit(records)
            if step.count > 0 {
                let receipt = try await StageContext<Log>.enqueue(step.records, to: producer)
                enqueued(Step(receipt: receipt, next: records[step.count - 1].offset + 1, start: start))
            }
            if let obstacle = step.obstacle { throw obstacle }
        }
    }

    /// Commits each step's offset when the log has it.
    private func settle(
        _ steps: AsyncStream<Step>, returning permit: AsyncStream<Void>.Continuation, _ hasCommitted: () -> Void
    ) async -> (any Error)? {
        do {
            for await step in steps {
                _ = try await step.receipt.offsets()
                permit.yield()
                try await assignment.commit(step.next)
                hasCommitted()
                report(
                    .committed(
                        partition: partition.partition, nextOffset: step.next, after: step.start.duration(to: .now)))
            }
            return nil
        } catch {
            return error
        }
    }
}
