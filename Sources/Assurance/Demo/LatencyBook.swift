import Synchronization

/// How long an edit takes until another device's file has it.
///
/// Edits of devices that are offline are not counted, as they take as long as the device is.
final class LatencyBook: Sendable {
    private struct State {
        var written: [String: (device: Int, at: ContinuousClock.Instant)] = [:]
        var order: [String] = []
        var latencies: [Duration] = []
        var edits = 0
    }

    /// Edits that are overwritten before another device has seen them are forgotten after so many others, and the latencies are those
    /// of the newest edits.
    private static let most = 20_000

    private let state = Mutex(State())

    func wrote(_ mark: String?, by device: Int, isOnline: Bool) {
        state.withLock { state in
            state.edits += 1
            guard let mark, isOnline else { return }
            state.written[mark] = (device, .now)
            state.order.append(mark)
            if state.order.count > Self.most {
                for old in state.order.prefix(Self.most / 2) { state.written[old] = nil }
                state.order.removeFirst(Self.most / 2)
            }
        }
    }

    /// A device's file has these.
    func saw(_ marks: some Sequence<String>, at device: Int) {
        state.withLock { state in
            let now = ContinuousClock.now
            for mark in marks {
                guard let write = state.written[mark], write.device != device else { continue }
                state.written[mark] = nil
                if state.latencies.count == Self.most { state.latencies.removeFirst(Self.most / 2) }
                state.latencies.append(now - write.at)
            }
        }
    }

    var edits: Int { state.withLock { $0.edits } }

    /// `p50 12 ms, p99 80 ms of 310 edits`.
    var summary: String {
        let sorted = state.withLock { $0.latencies }.sorted()
        guard !sorted.isEmpty else { return "none yet" }
        func quantile(_ share: Double) -> String {
            let index = min(sorted.count - 1, Int(share * Double(sorted.count)))
            let (seconds, attoseconds) = sorted[index].components
            return "\(seconds * 1000 + attoseconds / 1_000_000_000_000_000) ms"
        }
        return "p50 \(quantile(0.5)), p99 \(quantile(0.99)) of \(sorted.count) edits"
    }
}
