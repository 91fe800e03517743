import AsyncPrimitives
import SyncModel
import Synchronization

/// The pending long polls, which a stop ends at once; bounded by the requests that may wait.
final class LongPolls: Sendable {
    private struct State {
        var isStopping = false
        var wakeups: [ObjectIdentifier: (wakeup: Wakeup, device: Device)] = [:]
    }

    private let state = Mutex(State())

    /// Whether the gateway is stopping; then no request waits any more.
    var isStopping: Bool { state.withLock { $0.isStopping } }

    /// Adds a poll, unless the gateway is stopping.
    func add(_ wakeup: Wakeup, of device: Device) {
        state.withLock { state in
            if !state.isStopping { state.wakeups[ObjectIdentifier(wakeup)] = (wakeup, device) }
        }
    }

    func remove(_ wakeup: Wakeup) { state.withLock { $0.wakeups[ObjectIdentifier(wakeup)] = nil } }

    /// Wakes the polls of devices that may not go on.
    func wake(where isRevoked: (Device) -> Bool) {
        for (wakeup, device) in state.withLock({ Array($0.wakeups.values) }) where isRevoked(device) { wakeup.signal() }
    }

    /// Wakes every poll, permanently.
    func stop() {
        let wakeups = state.withLock { state in
            state.isStopping = true
            defer { state.wakeups = [:] }
            return state.wakeups
        }
        for (wakeup, _) in wakeups.values { wakeup.signal() }
    }
}
