import ChangeLog
import SyncModel

/// One life of a partition's producer: from the committed offset on until the log fails or the worker is told to end.
///
/// While the log makes one step durable the next one is checked. An offset is committed after the log has every part of the
/// records before it (I1).
struct PartitionRun<Log: ChangeLog>: Sendable {
    /// How a run ended.
    struct Ending {
        /// How many steps were committed.
        var committed = 0
        /// Why it ended; `nil` when the worker was told to.
        var error: (any Error)?
    }

    /// Records of `changes` and `dead-letters` under way to the log.
    private struct Step: Sendable {
        let receipt: AppendReceipt
        /// The offset to commit when they are there.
        let next: Int64
        /// When the records were read.
        let start: ContinuousClock.Instant
    }

    /// Steps that the log may have before it: one being written, and one behind it that it can begin with at once.
    private static var maximumSteps: Int { 2 }

    let log: Log
    let assignment: Assignment
    let history: History
    let limits: SyncLimits
    let stepBytes: Int
    let schemas: @Sendable () -> SchemaHistory
    let report: @Sendable (IngestEvent) -> Void

    var partition: TopicPartition { assignment.partition }

    /// Works until the task is cancelled or something fails; what the log took by then is committed.
    func run() async -> Ending {
        let reader: Log.Reader
        let producer: Log.Producer
        do {
            reader = try await makeReader()
        } catch {
            return Ending(error: error)
        }
        do {
            producer = try await log.producer()
        } catch {
            await reader.close()
            return Ending(error: error)
        }
        let ending = await work(from: reader, to: producer)
        await reader.close()
        await producer.close()
        return ending
    }

    private func work(from reader: Log.Reader, to producer: Log.Producer) async -> Ending {
        // Holds at most `maximumSteps`: each takes its room before it comes.
        let (steps, newSteps) = AsyncStream.makeStream(of: Step.self)
        let (room, freeRoom) = AsyncStream.makeStream(of: Void.self)
        for _ in 0..<Self.maximumSteps { freeRoom.yield() }
        // No child of this task: what the log has before it is settled although the worker is told to end.
        let settling = Task { await settle(steps, freeing: freeRoom) }
        return await withTaskGroup(of: Ending.self) { group in
            group.addTask {
                defer { newSteps.finish() }
                do {
                    try await admit(from: reader, to: producer, whenRoom: room) { newSteps.yield($0) }
                    return Ending()
                } catch {
                    return Ending(error: error is CancellationError ? nil : error)
                }
            }
            group.addTask { await settling.value }
            var ending = Ending()
            for await part in group {
                ending.committed += part.committed
                // A failed append makes every later one fail: the receipt in line knows the cause.
                if let error = part.error, ending.error == nil || isConsequence(ending.error) { ending.error = error }
                // Whichever ends first, the other has no more to do but to finish.
                group.cancelAll()
            }
            return ending
        }
    }

    private func isConsequence(_ error: (any Error)?) -> Bool {
        (error as? ChangeLogError)?.code == .producerFailed
    }

    /// Reads, checks and enqueues.
    private func admit(
        from reader: Log.Reader, to producer: Log.Producer, whenRoom room: AsyncStream<Void>,
        _ enqueued: (Step) -> Void
    ) async throws {
        var admission = Admission(history: history, limits: limits, maximumRecordSize: log.maximumRecordSize)
        for await _ in room {
            let records = try await reader.next(maximumBytes: stepBytes)
            let start = ContinuousClock.now
            let (appended, count, stop) = admit(records, &admission)
            if count > 0 {
                let receipt = try await producer.enqueue(appended)
                enqueued(Step(receipt: receipt, next: records[count - 1].offset + 1, start: start))
            }
            if let stop { throw stop }
        }
    }

    /// Checks records up to the first that must wait: those before it need not.
    private func admit(
        _ records: [LogRecord], _ admission: inout Admission
    ) -> (appended: [NewRecord], count: Int, stop: IngestError?) {
        let schemas = schemas()
        var appended: [NewRecord] = []
        var counts = IngestCounts()
        var stop: IngestError?
        do throws(IngestError) {
            for record in records {
                let admitted = try admission.admit(record, of: partition.partition, schemas: schemas)
                appended += admitted.records
                counts.add(admitted)
                if let refusal = admitted.recordRefusal {
                    let upload = UploadReference(partition: partition.partition, offset: record.offset)
                    report(.recordRefused(upload, refusal))
                }
            }
        } catch {
            stop = error
        }
        if counts.records > 0 { report(.admitted(partition: partition.partition, counts)) }
        return (appended, counts.records, stop)
    }

    /// Commits each step's offset when the log has it.
    private func settle(_ steps: AsyncStream<Step>, freeing room: AsyncStream<Void>.Continuation) async -> Ending {
        var ending = Ending()
        do {
            for await step in steps {
                _ = try await step.receipt.offsets()
                room.yield()
                try await assignment.commit(step.next)
                ending.committed += 1
                report(
                    .committed(
                        partition: partition.partition, nextOffset: step.next, after: step.start.duration(to: .now)))
            }
        } catch {
            ending.error = error
        }
        return ending
    }
}
