import ChangeLog
import Control
import KafkaChangeLog
import Observability
import ServiceLifecycle
import SyncModel
import Synchronization

/// Checks, while a process runs, that the topics still have its epoch, and follows the schema versions in `control`.
///
/// While `control` does not hold the epoch, nothing is appended. When it holds another one the process ends, since the
/// records of two epochs must not be mixed.
struct EpochMonitor: Sendable {
    let log: KafkaChangeLog
    let control: ControlTopic
    /// Those that the process reads or writes.
    let topics: [Topic]
    let interval: Duration
    let condition: ReadinessCondition
    let logger: Logger
    /// Prepares the process for further schema versions.
    let prepare: @Sendable (SchemaHistory) async throws -> Void

    /// Follows `control` until the task is cancelled.
    ///
    /// - Throws: `ControlError` for another epoch.
    func run() async throws {
        let refusal = Mutex<String?>(nil)
        do {
            try await control.follow(log, checkInterval: interval, logger: logger) { absence in
                if let absence {
                    log.suspendAppends(absence)
                    condition.setUnready("\(absence)")
                    return
                }
                log.resumeAppends()
                let found = await log.compareEnds(of: topics)
                // Without this comparison only the protection against lost records is missing.
                if let found, refusal.withLock({ $0 != "\(found)" }) {
                    logger.warning(
                        "The end offsets of a topic cannot be read: lost records would go unnoticed", error: found)
                }
                refusal.withLock { $0 = found.map { "\($0)" } }
                if let fault = log.fault(of: topics) {
                    if condition.unreadyReason != "\(fault)" {
                        logger.error("A topic was recreated or lost records", error: fault)
                    }
                    condition.setUnready("\(fault)")
                } else {
                    if condition.unreadyReason != nil {
                        logger.notice("The topics hold the epoch and its records again")
                    }
                    condition.setReady()
                }
            } prepare: {
                try await prepare($0)
            }
        } catch let error as ControlError {
            log.suspendAppends(error)
            condition.setUnready("\(error)")
            throw error
        }
    }
}
