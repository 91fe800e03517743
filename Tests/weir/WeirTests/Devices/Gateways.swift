import Seeded
import Synchronization

/// The ports of the gateways that take requests now.
final class Gateways: Sendable {
    private struct State {
        var ports: [UInt16] = []
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    func add(_ port: UInt16) {
        let waiting = state.withLock { state in
            state.ports.append(port)
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    func remove(_ port: UInt16) { state.withLock { state in state.ports.removeAll { $0 == port } } }

    /// One of them; waits until there is one.
    func any(_ random: inout SeededRandom) async -> UInt16 {
        while true {
            if let port = state.withLock({ $0.ports.randomElement(using: &random) }) { return port }
            await withCheckedContinuation { continuation in
                let isThere = state.withLock { state in
                    if state.ports.isEmpty { state.waiting.append(continuation) }
                    return !state.ports.isEmpty
                }
                if isThere { continuation.resume() }
            }
        }
    }
}
