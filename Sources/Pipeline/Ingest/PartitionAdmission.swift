import ChangeLog
import JSON
import PartitionSupervision
import SyncModel
import Synchronization
import ThreadExecutor

/// Checks the records of one partition, step by step: what ``Admission`` and the owners' quotas of dead letters make of them.
///
/// Large steps are checked on threads of their own: on those that all tasks share they would delay the small records of other
/// partitions.
final class PartitionAdmission: Sendable {
    /// What one step appends.
    struct Step: Sendable {
        var records: [NewRecord] = []
        /// How many of the records read are part of it.
        var count = 0
        /// Why the next record must wait; `nil` where all are part of it.
        var obstacle: IngestError?
    }

    private struct State: ~Copyable {
        var admission: Admission
        var quota: DeadLetterQuota
    }

    private let partition: Int
    private let schemas: KnownSchemas
    private let turns: ThreadTurns<Int>
    private let largeBytes: Int
    private let report: @Sendable (IngestEvent) -> Void
    /// Locked during a step; one is checked at a time.
    private let state: Mutex<State>

    /// - Parameter turns: the threads of large steps, of all partitions of a process.
    init(
        of partition: Int, history: History, schemas: KnownSchemas, parsers: JSONParserPool, turns: ThreadTurns<Int>,
        configuration: IngestConfiguration, report: @escaping @Sendable (IngestEvent) -> Void
    ) {
        self.partition = partition
        self.schemas = schemas
        self.turns = turns
        largeBytes = configuration.largeStepBytes
        self.report = report
        state = Mutex(
            State(
                admission: Admission(history: history, parsers: parsers),
                quota: DeadLetterQuota(bytesPerHour: configuration.deadLetterBytes)))
    }

    /// Checks records up to the first that must wait: those before it need not.
    func admit(_ records: [LogRecord]) async -> Step {
        let size = records.reduce(0) { $0 + $1.value.count }
        guard size > largeBytes else { return check(records) }
        return await turns.run(for: partition) { check(records) }
    }

    private func check(_ records: [LogRecord]) -> Step {
        let known = schemas.content
        var step = Step()
        var counts = IngestCounts()
        state.withLock { state in
            do throws(IngestError) {
                for record in records {
                    let admitted = try state.admission.admit(
                        record, of: partition, schemas: known.schemas, leavingOut: known.skipped)
                    counts.add(admitted)
                    for appending in admitted.records {
                        // A record that was refused as a whole has no other copy that names the reason.
                        let isAllowed =
                            appending.destination.topic != .deadLetters || admitted.recordRefusal != nil
                            || state.quota.allows(appending, at: record.time)
                        if isAllowed { step.records.append(appending) } else { counts.droppedDeadLetters += 1 }
                    }
                    if let refusal = admitted.recordRefusal {
                        let upload = UploadReference(partition: partition, offset: record.offset)
                        report(.recordRefused(upload, refusal))
                    }
                }
            } catch {
                step.obstacle = error
            }
        }
        step.count = counts.records
        if counts.records > 0 { report(.admitted(partition: partition, counts)) }
        return step
    }
}
