import FanOut
import Observability
import ServiceLifecycle
import SyncModel
import Synchronization

/// Logs what happens to the fan-out's partitions, and says when all of them serve.
final class FanOutWatch: FanOutObserver {
    private struct State {
        var unready: Set<Int>
        /// Why streams must be rebuilt, by partition, until it shows whether there was anything to lose.
        var held: [Int: FanOutEvent] = [:]
    }

    /// Who is told.
    private struct Listener {
        var passed: @Sendable (UploadReference) -> Void = { _ in }
        var ready: @Sendable (Set<Int>) -> Void = { _ in }
    }

    private let state: Mutex<State>
    private let partitions: Set<Int>
    private let listener = Mutex(Listener())
    private let logger: Logger
    /// Set under the lock, so that the last change is the last one told.
    private let condition: ReadinessCondition

    init(partitions: [Int], logger: Logger, condition: ReadinessCondition) {
        self.partitions = Set(partitions)
        state = Mutex(State(unready: Set(partitions)))
        self.logger = logger
        self.condition = condition
    }

    /// Has others told, before the fan-out is set to work.
    ///
    /// - Parameters:
    ///   - passed: up to where uploads can be pulled.
    ///   - ready: the partitions that serve, whenever they change.
    func tell(
        passed: @escaping @Sendable (UploadReference) -> Void,
        ready: @escaping @Sendable (Set<Int>) -> Void = { _ in }
    ) {
        listener.withLock { $0 = Listener(passed: passed, ready: ready) }
    }

    func record(_ event: FanOutEvent, partition: Int) {
        tell(event, partition: partition)
        switch event {
        case .ready: change { $0.remove(partition) }
        case .damaged: change { $0.insert(partition) }
        default: break
        }
    }

    func passed(_ upload: UploadReference) { listener.withLock(\.passed)(upload) }

    /// Returns when every partition serves.
    func untilReady() async throws { try await condition.untilReady() }

    /// Logs an event.
    ///
    /// A stream that must be rebuilt is worth a warning, unless it turns out to have no rows: at the first start of a
    /// history there are no files.
    private func tell(_ event: FanOutEvent, partition: Int) {
        let held = state.withLock { state in
            if case .damaged = event { return state.held.updateValue(event, forKey: partition) }
            if case .applied = event { return nil }
            return state.held.removeValue(forKey: partition)
        }
        let isEmpty = event == .rebuilt(rows: 0)
        let place: LogMetadata = [.partition: .integer(partition)]
        if let held { logger.log(isEmpty ? .debug : .warning, "Stream \(held)", place) }
        switch event {
        case .applied, .damaged: break
        case .ready, .stopped: logger.debug("Stream \(event)", place)
        case .rebuilding(let progress): if progress.done > 0 { logger.info("Stream \(event)", place) }
        case .rebuilt: logger.log(isEmpty ? .debug : .notice, "Stream \(event)", place)
        case .retrying, .waiting: logger.warning("Stream \(event)", place)
        }
    }

    private func change(_ body: (inout Set<Int>) -> Void) {
        state.withLock { state in
            let before = state.unready
            body(&state.unready)
            if state.unready != before { listener.withLock(\.ready)(partitions.subtracting(state.unready)) }
            if state.unready.isEmpty { return condition.setReady() }
            let numbers = state.unready.sorted().map(String.init).joined(separator: ", ")
            condition.setUnready("streams of these partitions do not serve yet: \(numbers)")
        }
    }
}
