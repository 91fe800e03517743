import SyncModel
import Synchronization

/// What uploads may hold at a time, and fairness between their callers (I10): bytes under way in all and of one caller, and a
/// caller's changes a second.
final class UploadQuota: Sendable {
    private struct Use {
        var bytes = 0
        /// Changes that may come at once; below zero after a batch larger than all that may be saved up.
        var tokens: Double
        var filled: Duration
    }

    private struct State {
        var bytes = 0
        var callers: [SyncID: Use] = [:]
        var sweptAt: Duration?
    }

    /// Callers remembered at a time; about 150 bytes each.
    private static let maximumCallers = 100_000
    /// Seconds of the rate that a caller who sent nothing may send at once.
    private static let burst = 10.0

    private let maximumBytes: Int
    private let maximumBytesOfCaller: Int
    private let changesPerSecond: Int
    private let maximumCallers: Int
    private let time: GatewayDeadline
    private let state = Mutex(State())

    /// Makes a quota.
    ///
    /// - Parameters:
    ///   - maximumBytes: of all uploads under way.
    ///   - maximumBytesOfCaller: of one caller's uploads under way.
    ///   - changesPerSecond: of one caller, on average over ten seconds; 0 for no limit.
    ///   - maximumCallers: remembered at a time.
    init(
        maximumBytes: Int, maximumBytesOfCaller: Int, changesPerSecond: Int, time: GatewayDeadline,
        maximumCallers: Int = UploadQuota.maximumCallers
    ) {
        self.maximumBytes = maximumBytes
        self.maximumBytesOfCaller = maximumBytesOfCaller
        self.changesPerSecond = changesPerSecond
        self.maximumCallers = maximumCallers
        self.time = time
    }

    /// Lets an upload in, to be followed by ``leave(_:bytes:)``; one with nothing else under way is let in whatever its size.
    func enter(_ caller: SyncID, bytes: Int, changes: Int) throws(Problem) {
        let now = time.now()
        let problem: Problem? = state.withLock { state in
            guard state.bytes == 0 || state.bytes + bytes <= maximumBytes else {
                return Problem(.overloaded, "the uploads under way use up the room that there is for them")
            }
            if state.callers[caller] == nil, !makeRoom(&state, now) {
                return Problem(.overloaded, "too many callers send at the moment")
            }
            var use = state.callers[caller] ?? Use(tokens: capacity, filled: now)
            guard use.bytes == 0 || use.bytes + bytes <= maximumBytesOfCaller else {
                return Problem(
                    .rateLimited, "\(use.bytes) bytes of this caller are under way, at most \(maximumBytesOfCaller)")
            }
            if changesPerSecond > 0 {
                use.tokens = tokens(of: use, now)
                use.filled = now
                // A batch larger than all that may be saved up goes through when nothing was taken before it.
                let needed = min(Double(changes), capacity)
                guard use.tokens >= needed else {
                    state.callers[caller] = use
                    let wait = (needed - use.tokens) / Double(changesPerSecond)
                    return Problem(
                        .rateLimited, "this caller may send \(changesPerSecond) changes a second",
                        retryAfter: max(1, Int(wait.rounded(.up))))
                }
                use.tokens -= Double(changes)
            }
            use.bytes += bytes
            state.bytes += bytes
            state.callers[caller] = use
            return nil
        }
        if let problem { throw problem }
    }

    /// An upload is over.
    func leave(_ caller: SyncID, bytes: Int) {
        let now = time.now()
        state.withLock { state in
            state.bytes -= bytes
            guard var use = state.callers[caller] else { return }
            use.bytes -= bytes
            state.callers[caller] = mayForget(use, now) ? nil : use
        }
    }

    /// The bytes of all uploads under way.
    var bytes: Int { state.withLock { $0.bytes } }

    /// Whether one more caller can be remembered; forgets those that owe nothing where there is no room, at most once a second.
    private func makeRoom(_ state: inout State, _ now: Duration) -> Bool {
        guard state.callers.count >= maximumCallers else { return true }
        if let sweptAt = state.sweptAt, now - sweptAt < .seconds(1) { return false }
        state.sweptAt = now
        state.callers = state.callers.filter { !mayForget($0.value, now) }
        return state.callers.count < maximumCallers
    }

    /// Whether a caller would be treated the same if it had never sent anything.
    private func mayForget(_ use: Use, _ now: Duration) -> Bool {
        use.bytes == 0 && (changesPerSecond == 0 || tokens(of: use, now) >= capacity)
    }

    private func tokens(of use: Use, _ now: Duration) -> Double {
        min(capacity, use.tokens + (now - use.filled) / .seconds(1) * Double(changesPerSecond))
    }

    private var capacity: Double { Double(changesPerSecond) * Self.burst }
}
