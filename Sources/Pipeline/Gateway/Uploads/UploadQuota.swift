import SyncModel
import Synchronization

/// Limits uploads (I10): the bytes in flight of all callers and of each caller, and each caller's changes per second.
final class UploadQuota: Sendable {
    private struct Usage {
        var bytes = 0
        /// Token bucket of changes; negative after a batch that is larger than the bucket.
        var tokens: Double
        var filled: Duration
    }

    private struct State {
        var bytes = 0
        var callers: [SyncID: Usage] = [:]
        var sweptAt: Duration?
    }

    /// Callers tracked at a time; about 150 bytes each.
    private static let maximumCallers = 100_000
    /// Size of the token bucket, in seconds of the rate.
    private static let burst = 10.0

    private let maximumBytes: Int
    private let maximumBytesOfCaller: Int
    private let changesPerSecond: Int
    private let maximumCallers: Int
    private let clock: GatewayClock
    private let state = Mutex(State())

    /// - Parameters:
    ///   - maximumBytes: of all uploads in flight.
    ///   - maximumBytesOfCaller: of one caller's uploads in flight.
    ///   - changesPerSecond: of one caller, on average over ten seconds; 0 for no limit.
    init(
        maximumBytes: Int, maximumBytesOfCaller: Int, changesPerSecond: Int, clock: GatewayClock,
        maximumCallers: Int = UploadQuota.maximumCallers
    ) {
        self.maximumBytes = maximumBytes
        self.maximumBytesOfCaller = maximumBytesOfCaller
        self.changesPerSecond = changesPerSecond
        self.maximumCallers = maximumCallers
        self.clock = clock
    }

    /// Reserves an upload until ``leave(_:bytes:)``; one upload is always accepted, whatever its size.
    func enter(_ caller: SyncID, bytes: Int, changes: Int) throws(Problem) {
        let now = clock.now()
        let problem: Problem? = state.withLock { state in
            guard state.bytes == 0 || state.bytes + bytes <= maximumBytes else {
                return Problem(.overloaded, "the uploads in flight have reached their limit of \(maximumBytes) bytes")
            }
            if state.callers[caller] == nil, !canAddCaller(&state, now) {
                return Problem(.overloaded, "too many callers are uploading at the moment")
            }
            var usage = state.callers[caller] ?? Usage(tokens: capacity, filled: now)
            guard usage.bytes == 0 || usage.bytes + bytes <= maximumBytesOfCaller else {
                return Problem(
                    .rateLimited,
                    "\(usage.bytes) bytes of this caller are in flight, at most \(maximumBytesOfCaller) are allowed")
            }
            if changesPerSecond > 0 {
                usage.tokens = tokens(of: usage, now)
                usage.filled = now
                // A batch that is larger than the bucket is accepted when the bucket is full.
                let needed = min(Double(changes), capacity)
                guard usage.tokens >= needed else {
                    state.callers[caller] = usage
                    let wait = (needed - usage.tokens) / Double(changesPerSecond)
                    return Problem(
                        .rateLimited, "this caller may send \(changesPerSecond) changes per second",
                        retryAfter: max(1, Int(wait.rounded(.up))))
                }
                usage.tokens -= Double(changes)
            }
            usage.bytes += bytes
            state.bytes += bytes
            state.callers[caller] = usage
            return nil
        }
        if let problem { throw problem }
    }

    func leave(_ caller: SyncID, bytes: Int) {
        let now = clock.now()
        state.withLock { state in
            state.bytes -= bytes
            guard var usage = state.callers[caller] else { return }
            usage.bytes -= bytes
            state.callers[caller] = isIdle(usage, now) ? nil : usage
        }
    }

    /// The bytes of all uploads in flight.
    var bytes: Int { state.withLock { $0.bytes } }

    /// Whether one more caller can be tracked; removes idle callers first if necessary, at most once a second.
    private func canAddCaller(_ state: inout State, _ now: Duration) -> Bool {
        guard state.callers.count >= maximumCallers else { return true }
        if let sweptAt = state.sweptAt, now - sweptAt < .seconds(1) { return false }
        state.sweptAt = now
        state.callers = state.callers.filter { !isIdle($0.value, now) }
        return state.callers.count < maximumCallers
    }

    /// Whether a caller would be treated the same without its entry.
    private func isIdle(_ usage: Usage, _ now: Duration) -> Bool {
        usage.bytes == 0 && (changesPerSecond == 0 || tokens(of: usage, now) >= capacity)
    }

    private func tokens(of usage: Usage, _ now: Duration) -> Double {
        min(capacity, usage.tokens + (now - usage.filled) / .seconds(1) * Double(changesPerSecond))
    }

    private var capacity: Double { Double(changesPerSecond) * Self.burst }
}
