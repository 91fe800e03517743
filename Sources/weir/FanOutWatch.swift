import FanOut
import Gateway
import Observability
import SyncModel
import Synchronization

/// Logs what happens to the fan-out's partitions, and knows when all of them serve.
final class FanOutWatch: FanOutObserver {
    private struct State {
        var unready: Set<Int>
        /// Why streams must be rebuilt, by partition, until it shows whether there was anything to lose.
        var held: [Int: FanOutEvent] = [:]
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state: Mutex<State>
    private let backlog: UploadBacklog
    private let logger: Logger

    init(partitions: Int, backlog: UploadBacklog, logger: Logger) {
        self.backlog = backlog
        state = Mutex(State(unready: Set(0..<partitions)))
        self.logger = logger
    }

    func note(_ event: FanOutEvent, partition: Int) {
        tell(event, partition: partition)
        switch event {
        case .ready: becameReady(partition)
        case .damaged: _ = state.withLock { $0.unready.insert(partition) }
        default: break
        }
    }

    func passed(_ upload: UploadReference) { backlog.passed(upload) }

    /// Returns when every partition serves.
    func untilReady() async {
        await withCheckedContinuation { continuation in
            let isReady = state.withLock { state in
                if state.unready.isEmpty { return true }
                state.waiting.append(continuation)
                return false
            }
            if isReady { continuation.resume() }
        }
    }

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
        case .rebuilding: logger.info("Stream \(event)", place)
        case .rebuilt: logger.log(isEmpty ? .debug : .notice, "Stream \(event)", place)
        case .retrying: logger.warning("Stream \(event)", place)
        }
    }

    private func becameReady(_ partition: Int) {
        let waiting = state.withLock { state -> [CheckedContinuation<Void, Never>] in
            state.unready.remove(partition)
            guard state.unready.isEmpty else { return [] }
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }
}
