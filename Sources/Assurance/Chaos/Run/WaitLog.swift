import LoadTools
import Synchronization

/// How long devices waited, and the faults meanwhile.
final class WaitLog: Sendable {
    struct Wait: Sendable {
        let who: String
        let start: Int64
        let end: Int64

        var seconds: Double { Double(end - start) / 1e9 }
    }

    struct FaultSpan: Sendable {
        let text: String
        let start: Int64
        /// `nil` while it lasts.
        var end: Int64?
    }

    /// The percentiles of some waits, and the longest with the faults before and during each, the longest during it first.
    struct Summary: Sendable {
        let count: Int
        let p50: Double
        let p99: Double
        let longest: [(seconds: Double, who: String, faults: [String])]
    }

    /// How long a fault lasted, and the longest waits of devices until the next one began, in seconds.
    struct Caused: Sendable {
        let fault: String
        let lasted: Double
        let batch: Double
        let pull: Double
    }

    private struct State {
        var batches: [Wait] = []
        var pulls: [Wait] = []
        /// By device, when its pull was first sent that has no answer yet.
        var pulling: [String: Int64] = [:]
        var faults: [FaultSpan] = []
    }

    private let state = Mutex(State())

    /// A batch has its outcome, which its device first asked for at a time.
    func settled(_ batch: BatchName, from start: Int64) {
        let wait = Wait(who: "\(batch)", start: start, end: SystemCall.nanoseconds())
        state.withLock { $0.batches.append(wait) }
    }

    /// A pull was answered or failed; a wait includes the failed pulls before it.
    func pulled(by device: String, from start: Int64, isAnswered: Bool) {
        let end = SystemCall.nanoseconds()
        state.withLock { state in
            let first = state.pulling[device] ?? start
            guard isAnswered else {
                state.pulling[device] = first
                return
            }
            state.pulling[device] = nil
            state.pulls.append(Wait(who: "a pull of \(device)", start: first, end: end))
        }
    }

    /// A fault begins; the result is passed to ``end(_:)``.
    func begin(_ fault: String) -> Int {
        let now = SystemCall.nanoseconds()
        return state.withLock { state in
            state.faults.append(FaultSpan(text: fault, start: now))
            return state.faults.count - 1
        }
    }

    func end(_ fault: Int) {
        let now = SystemCall.nanoseconds()
        state.withLock { $0.faults[fault].end = now }
    }

    func batches() -> Summary { state.withLock { Self.summary($0.batches, $0.faults) } }
    func pulls() -> Summary { state.withLock { Self.summary($0.pulls, $0.faults) } }

    /// By fault, in the order in which they began; for faults that come one after the other.
    func byFault() -> [Caused] { state.withLock { Self.caused(by: $0.faults, batches: $0.batches, pulls: $0.pulls) } }

    static func caused(by faults: [FaultSpan], batches: [Wait], pulls: [Wait]) -> [Caused] {
        zip(faults, faults.dropFirst().map(\.start) + [.max]).map { fault, next in
            let lasted = (fault.end ?? fault.start) - fault.start
            func longest(_ waits: [Wait]) -> Double {
                waits.lazy.filter { $0.start < next && $0.end > fault.start }.map(\.seconds).max() ?? 0
            }
            return Caused(
                fault: fault.text, lasted: Double(lasted) / 1e9, batch: longest(batches), pull: longest(pulls))
        }
    }

    /// Nanoseconds after the end of a fault in which it still counts as a cause of a wait.
    private static let aftermath: Int64 = 5_000_000_000

    /// - Parameter shown: how many of the longest waits are listed.
    static func summary(_ waits: [Wait], _ faults: [FaultSpan], shown: Int = 3) -> Summary {
        let sorted = waits.sorted { $0.end - $0.start < $1.end - $1.start }
        let longest = sorted.suffix(shown).reversed().map { wait in
            let causes = faults.filter { $0.start < wait.end && ($0.end ?? .max) > wait.start - aftermath }
                .sorted { overlap($0, wait) > overlap($1, wait) }
            return (wait.seconds, wait.who, causes.map(\.text))
        }
        func overlap(_ fault: FaultSpan, _ wait: Wait) -> Int64 {
            min(fault.end ?? .max, wait.end) - max(fault.start, wait.start)
        }
        func percentile(_ share: Double) -> Double {
            sorted.isEmpty ? 0 : sorted[min(sorted.count - 1, Int(Double(sorted.count) * share))].seconds
        }
        return Summary(count: waits.count, p50: percentile(0.5), p99: percentile(0.99), longest: longest)
    }
}
