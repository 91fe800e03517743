import ChangeLog
import Control
import KafkaChangeLog
import Observability
import PostgresRecordStore
import ServiceLifecycle
import SyncModel
import Synchronization

/// Makes sure, while a process runs, that the topics are still those of its history, and learns of schema versions.
///
/// Where `control` does not hold the history nothing is appended until it does again; where it names another one the process
/// ends: to go on could mix the two.
struct EpochMonitor: Sendable {
    let parts: ClusterParts
    /// Those that the process reads or writes.
    let topics: [Topic]
    let interval: Duration
    let condition: ReadinessCondition
    let logger: Logger

    /// Follows `control` until the task is cancelled.
    ///
    /// - Throws: `ControlError` for another history.
    func run() async throws {
        let (log, control) = (parts.log, parts.control)
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
                // Work goes on, and loses this protection alone.
                if let found, refusal.withLock({ $0 != "\(found)" }) {
                    logger.warning("A topic cannot be looked at", error: found)
                }
                refusal.withLock { $0 = found.map { "\($0)" } }
                // What was found is said, and not only felt where it is needed.
                if let fault = log.fault(of: topics) {
                    if condition.unreadyReason != "\(fault)" {
                        logger.error("A topic is not what it was", error: fault)
                    }
                    condition.setUnready("\(fault)")
                } else {
                    if condition.unreadyReason != nil { logger.notice("The topics hold the history") }
                    condition.setReady()
                }
            } prepare: { schemas in
                // The tables come first.
                try await parts.tables?.prepare(schemas, epoch: control.history.epoch)
            }
        } catch let error as ControlError {
            log.suspendAppends(error)
            condition.setUnready("\(error)")
            throw error
        }
    }
}

extension ClusterRole {
    /// The topics without which the role cannot work, besides `control`.
    var topics: [Topic] {
        switch self {
        case .gateway: [.uploads]
        case .ingest: [.uploads, .changes]
        case .ordering: [.changes, .ordered]
        case .fanout: [.ordered]
        }
    }
}
