import FanOut
import FanOutLink
import Observability
import ServiceLifecycle
import SyncModel
import Synchronization

/// Logs the events of the fan-out's partitions, and keeps the readiness condition of their streams.
package final class FanOutMonitor: FanOutObserver {
    private struct State {
        var unready: Set<Int>
        /// The `damaged` events by partition, until the rebuild shows whether there were rows to lose.
        var damage: [Int: FanOutEvent] = [:]
    }

    private struct Handlers {
        var passed: @Sendable (StreamReport) -> Void = { _ in }
        var ready: @Sendable (Set<Int>) -> Void = { _ in }
    }

    private let state: Mutex<State>
    private let partitions: Set<Int>
    private let handlers = Mutex(Handlers())
    private let logger: Logger
    /// Set while the state is locked, so that the last change is set last.
    private let condition: ReadinessCondition

    package init(partitions: [Int], logger: Logger, condition: ReadinessCondition) {
        self.partitions = Set(partitions)
        state = Mutex(State(unready: Set(partitions)))
        self.logger = logger
        self.condition = condition
    }

    /// Sets the handlers, before the fan-out runs.
    ///
    /// - Parameters:
    ///   - passed: gets what each stream has applied.
    ///   - ready: gets the partitions that serve, whenever they change.
    package func handle(
        passed: @escaping @Sendable (StreamReport) -> Void,
        ready: @escaping @Sendable (Set<Int>) -> Void = { _ in }
    ) {
        handlers.withLock { $0 = Handlers(passed: passed, ready: ready) }
    }

    package func record(_ event: FanOutEvent, partition: Int) {
        log(event, partition: partition)
        switch event {
        case .ready: change { $0.remove(partition) }
        case .damaged, .reopening: change { $0.insert(partition) }
        default: break
        }
    }

    package func passed(_ report: StreamReport) { handlers.withLock(\.passed)(report) }

    /// Returns when every partition serves.
    package func untilReady() async throws { try await condition.untilReady() }

    /// A stream that must be rebuilt is worth a warning, unless the rebuild finds no rows: at the first start of a history
    /// there are no files.
    private func log(_ event: FanOutEvent, partition: Int) {
        let damage = state.withLock { state in
            if case .damaged = event { return state.damage.updateValue(event, forKey: partition) }
            if case .applied = event { return nil }
            return state.damage.removeValue(forKey: partition)
        }
        let isEmpty = event == .rebuilt(rows: 0)
        let metadata: LogMetadata = [.partition: .integer(partition)]
        if let damage { logger.log(isEmpty ? .debug : .warning, "Stream \(damage)", metadata) }
        switch event {
        case .applied, .damaged: break
        case .ready, .stopped: logger.debug("Stream \(event)", metadata)
        case .rebuilding(let progress): if progress.done > 0 { logger.info("Stream \(event)", metadata) }
        case .rebuilt: logger.log(isEmpty ? .debug : .notice, "Stream \(event)", metadata)
        case .retrying, .waiting, .reopening: logger.warning("Stream \(event)", metadata)
        case .paused: logger.critical("Stream \(event)", metadata)
        case .resumed: logger.notice("Stream \(event)", metadata)
        }
    }

    private func change(_ body: (inout Set<Int>) -> Void) {
        state.withLock { state in
            let before = state.unready
            body(&state.unready)
            if state.unready != before { handlers.withLock(\.ready)(partitions.subtracting(state.unready)) }
            if state.unready.isEmpty { return condition.setReady() }
            condition.setUnready("streams of these partitions do not serve yet: \(partitionList(state.unready))")
        }
    }
}

/// Partitions as messages list them: `0, 3, 4`.
package func partitionList(_ partitions: Set<Int>) -> String {
    partitions.sorted().map(String.init).joined(separator: ", ")
}
