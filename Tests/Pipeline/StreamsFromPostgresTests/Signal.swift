import FanOut
import Synchronization

/// What happened so far, for a test that waits for something to happen.
final class Signal<Value: Sendable>: Sendable {
    private struct State {
        var values: [Value] = []
        var waiters: [(isMet: @Sendable ([Value]) -> Bool, continuation: CheckedContinuation<Void, Never>)] = []
    }

    private let state = Mutex(State())

    var values: [Value] { state.withLock { $0.values } }

    func add(_ value: Value) {
        change { $0.values.append(value) }
    }

    /// Waits until what happened meets a condition.
    func until(_ isMet: @escaping @Sendable ([Value]) -> Bool) async {
        await withCheckedContinuation { continuation in
            change { $0.waiters.append((isMet, continuation)) }
        }
    }

    private func change(_ body: (inout sending State) -> Void) {
        let met = state.withLock { state in
            body(&state)
            let values = state.values
            let met = state.waiters.filter { $0.isMet(values) }.map(\.continuation)
            state.waiters.removeAll { $0.isMet(values) }
            return met
        }
        for continuation in met { continuation.resume() }
    }
}

/// Keeps the events of a fan-out.
final class Events: FanOutObserver {
    let all = Signal<(partition: Int, event: FanOutEvent)>()

    func record(_ event: FanOutEvent, partition: Int) { all.add((partition, event)) }

    /// Waits until a partition has applied all records before an offset.
    func applied(upTo offset: Int64, of partition: Int) async {
        await all.until { events in
            events.contains { place, event in
                switch event {
                case .applied(_, _, let next, _), .ready(_, let next): place == partition && next >= offset
                default: false
                }
            }
        }
    }

    /// Waits until a partition was ready so many times.
    func ready(_ count: Int = 1, of partition: Int) async {
        await all.until { events in
            events.count { place, event in
                if case .ready = event { place == partition } else { false }
            } >= count
        }
    }

    /// The events of a partition.
    func events(of partition: Int) -> [FanOutEvent] { all.values.filter { $0.partition == partition }.map(\.event) }
}
