import Observability
import Synchronization

/// Records values, and lets tests wait for them.
final class Recorder<Value: Sendable>: Sendable {
    private struct State {
        var values: [Value] = []
        var waiting: [(condition: @Sendable ([Value]) -> Bool, continuation: CheckedContinuation<Void, Never>)] = []
    }

    private let state = Mutex(State())

    var values: [Value] { state.withLock { $0.values } }

    func record(_ value: Value) {
        let ready = state.withLock { state in
            state.values.append(value)
            let values = state.values
            let ready = state.waiting.filter { $0.condition(values) }
            state.waiting.removeAll { $0.condition(values) }
            return ready
        }
        for waiter in ready { waiter.continuation.resume() }
    }

    /// Waits until the recorded values satisfy a condition.
    func until(_ condition: @escaping @Sendable ([Value]) -> Bool) async {
        await withCheckedContinuation { continuation in
            let isDone = state.withLock { state in
                if condition(state.values) { return true }
                state.waiting.append((condition, continuation))
                return false
            }
            if isDone { continuation.resume() }
        }
    }

    /// Waits until a value was recorded.
    func until(contains condition: @escaping @Sendable (Value) -> Bool) async {
        await until { $0.contains(where: condition) }
    }
}

/// Records log lines.
struct LogLines: LogSink {
    let lines = Recorder<String>()

    func write(_ line: [UInt8]) { lines.record(String(decoding: line, as: UTF8.self)) }

    var logger: Logger { Logger(label: "link", output: LogOutput(format: .text, to: self)) }

    func until(_ text: String) async { await lines.until { $0.contains { $0.contains(text) } } }
}
