import Metrics
import SyncModel
import Synchronization

/// What a device may pull of a page, before this is read.
enum PageTokens: Sendable {
    /// A whole page, for which so many tokens are taken until ``RateLimits/giveBack(_:to:)``.
    case held(Int)
    /// A small page.
    case few
    /// Nothing: a page has at least one row, which may be large.
    case owed

    /// Of the rows of a page, besides its own limits.
    var limits: (bytes: Int, rows: Int) {
        switch self {
        case .held: (.max, .max)
        case .few: RateLimits.smallPage
        case .owed: (RateLimits.smallPage.bytes, 0)
        }
    }
}

/// Limits the requests, changes, bytes and pulled bytes a second of each caller and of each device, and what a caller's uploads take
/// in the log in a day (I10).
///
/// Bytes are those of bodies, and those of the rows that changes touched, which are known once these are ordered. Pulled bytes are known
/// once they are read; until then a page has the tokens of the largest one.
///
/// A request takes its tokens from all buckets of its caller and its device, or from none. Callers and devices with full buckets are
/// forgotten when entries are needed, so that the memory is bounded.
final class RateLimits: Sendable {
    private struct State {
        var callers: [SyncID: TokenBuckets] = [:]
        var devices: [Device: TokenBuckets] = [:]
        /// The number of entries at which those with full buckets are removed.
        var sweepAt = RateLimits.firstSweep
        var sweptAt = -Double.infinity

        var count: Int { callers.count + devices.count }
    }

    /// Callers and their devices; a caller's devices are in the same shard, so that one lock serves a request.
    private final class Shard: Sendable {
        let state = Mutex(State())
    }

    /// Threads that serve requests of different callers rarely meet at a lock, and a sweep holds one for a sixteenth of all entries.
    private static let shardCount = 16
    /// Callers and devices tracked at a time; about 300 bytes each.
    static let maximumEntries = 200_000
    private static let firstSweep = 64
    /// Bytes of the rows that a part touched which count once.
    private static let weighed = 1 << 20
    /// How often those above count: a part of 4 MiB keeps its partition busy for about 0.1 s, and as it counts more than a bucket holds, one
    /// comes in ten seconds, so that it delays about one in a hundred requests of others.
    private static let weight = 16
    /// Pages that have no more bytes of rows, and no more rows, do not count.
    static let smallPage = (bytes: 48 << 10, rows: 48)
    /// What a pulled row counts at least: to read, compress and send a small one takes as long as this many bytes of a large one.
    private static let pulledRow = 1 << 10
    /// Seconds between two sweeps of a shard without room: else each refused request would search all entries.
    private static let sweepInterval = 0.1

    private let callerRates: Rates
    private let deviceRates: Rates
    private let callerLimits: TokenBuckets.Limits
    private let deviceLimits: TokenBuckets.Limits
    /// The pulled bytes that the smallest bucket holds; 0 where they are not limited.
    private let leastPulled: Int
    private let maximumOfShard: Int
    private let clock: GatewayClock
    private let shards: [Shard]
    private let refusals: [RateLimit: Counter]
    private let fields: RateLimitFields

    init(
        caller: Rates, device: Rates, metrics: GatewayMetrics = GatewayMetrics(), clock: GatewayClock,
        maximumEntries: Int = RateLimits.maximumEntries
    ) {
        precondition(device.dailyBytes == 0, "only callers have a limit of a day")
        callerRates = caller
        deviceRates = device
        callerLimits = TokenBuckets.Limits(caller)
        deviceLimits = TokenBuckets.Limits(device)
        leastPulled = [caller, device].map { $0.capacity(of: .pulledBytes) }.filter { $0 > 0 }.min() ?? 0
        maximumOfShard = max(2, maximumEntries / Self.shardCount)
        self.clock = clock
        shards = (0..<Self.shardCount).map { _ in Shard() }
        refusals = metrics.rateLimited
        fields = RateLimitFields(caller: caller, device: device)
    }

    /// Takes the tokens of a request.
    ///
    /// - Parameters:
    ///   - device: `nil` where the request names none, or it is not known.
    ///   - isRefusal: whether a request is refused, and counted so, where a limit is reached.
    /// - Returns: the headers of its response.
    /// - Throws: ``ProblemCode/rateLimited`` if one of the limits is reached; then no bucket has fewer tokens than before.
    @discardableResult
    func take(
        _ cost: RateCost, of caller: SyncID, _ device: Device? = nil, isRefusal: Bool = true
    ) throws(Problem) -> RateLimitStatus? {
        guard !fields.isEmpty else { return nil }
        let now = seconds()
        let result: Result<RateLimitStatus?, Problem> = shard(of: caller).state.withLock { state in
            guard makeRoom(&state, now) else {
                return .failure(Problem(.overloaded, "too many callers and devices send requests at the moment"))
            }
            // Found once: what costs most here is to hash ids.
            let callerIndex = state.callers.index(forKey: caller)
            var ofCaller = callerIndex.map { state.callers.values[$0] } ?? TokenBuckets(at: now)
            ofCaller.refill(callerLimits, at: now)
            let deviceIndex = device.flatMap { state.devices.index(forKey: $0) }
            var ofDevice: TokenBuckets?
            if device != nil {
                ofDevice = deviceIndex.map { state.devices.values[$0] } ?? TokenBuckets(at: now)
                ofDevice?.refill(deviceLimits, at: now)
            }
            guard ofCaller.allow(cost, callerLimits), ofDevice?.allow(cost, deviceLimits) ?? true else {
                return .failure(refusal(of: cost, ofCaller, ofDevice, isCounted: isRefusal))
            }
            ofCaller.take(cost, callerLimits)
            if let callerIndex {
                state.callers.values[callerIndex] = ofCaller
            } else {
                state.callers[caller] = ofCaller
            }
            if let device, var buckets = ofDevice {
                buckets.take(cost, deviceLimits)
                if let deviceIndex {
                    state.devices.values[deviceIndex] = buckets
                } else {
                    state.devices[device] = buckets
                }
                ofDevice = buckets
            }
            return .success(fields.status(after: cost, ofCaller, ofDevice))
        }
        return try result.get()
    }

    /// Refuses a request whose caller has not the tokens for it, before more of it is read; takes none.
    func check(_ caller: SyncID, _ cost: RateCost = .request) throws(Problem) {
        guard callerRates != Rates() else { return }
        let now = seconds()
        let problem: Problem? = shard(of: caller).state.withLock { state in
            guard var buckets = state.callers[caller] else { return nil }
            buckets.refill(callerLimits, at: now)
            return buckets.allow(cost, callerLimits) ? nil : refusal(of: cost, buckets, nil)
        }
        if let problem { throw problem }
    }

    /// Refuses a request that has its tokens and had to wait, where others of its device or its caller have taken all meanwhile.
    ///
    /// - Parameters:
    ///   - cost: what it needs once more.
    ///   - own: what it took itself.
    ///   - isRefusal: whether a request is refused, and counted so, where a limit is reached.
    func check(
        _ device: Device, _ cost: RateCost, besides own: RateCost = .none, isRefusal: Bool = true
    ) throws(Problem) {
        guard !fields.isEmpty else { return }
        let now = seconds()
        let problem: Problem? = shard(of: device.caller).state.withLock { state in
            var ofCaller = state.callers[device.caller] ?? TokenBuckets(at: now)
            ofCaller.refill(callerLimits, at: now)
            var ofDevice = state.devices[device] ?? TokenBuckets(at: now)
            ofDevice.refill(deviceLimits, at: now)
            ofCaller.giveBack(own)
            ofDevice.giveBack(own)
            let isAllowed = ofCaller.allow(cost, callerLimits) && ofDevice.allow(cost, deviceLimits)
            return isAllowed ? nil : refusal(of: cost, ofCaller, ofDevice, isCounted: isRefusal)
        }
        if let problem { throw problem }
    }

    /// Whether a device and its caller have the tokens for a cost; takes none.
    func allows(_ device: Device, _ cost: RateCost) -> Bool {
        do throws(Problem) { try check(device, cost, isRefusal: false) } catch { return false }
        return true
    }

    /// Takes tokens for rows that an upload has touched, down to as many below none as a full bucket has.
    ///
    /// What one part has above ``weighed`` counts ``weight`` times: the others of a partition wait for all of it. The bound is for streams that
    /// were away, whose uploads are reported all at once. Where all entries are needed nothing is taken.
    func touched(_ bytes: Int, by device: Device) {
        let once = min(bytes, Self.weighed)
        charge(RateCost(bytes: once + Self.weight * min(bytes - once, 1 << 40), requests: 0), to: device.caller, device)
    }

    /// Takes a caller's tokens for a body that was refused, down to as many below none as a full bucket has.
    func refused(_ bytes: Int, of caller: SyncID) { charge(RateCost(bytes: bytes, requests: 0), to: caller) }

    /// Takes the tokens of a page that is about to be read, so that pages read at the same time count, too.
    ///
    /// - Parameters:
    ///   - bytes: what it has at most.
    ///   - isRefusable: whether the request is refused where as much is owed as half a bucket holds.
    func hold(_ bytes: Int, for device: Device, isRefusable: Bool) throws(Problem) -> PageTokens {
        guard leastPulled > 0 else { return .held(0) }
        let held = min(bytes, leastPulled)
        do throws(Problem) {
            try take(RateCost(requests: 0, pulled: held), of: device.caller, device, isRefusal: false)
            return .held(held)
        } catch {
            let most = RateCost(requests: 0, pulled: -leastPulled / 2)
            if isRefusable { try check(device, most) } else if !allows(device, most) { return .owed }
            return .few
        }
    }

    func giveBack(_ tokens: PageTokens, to device: Device) {
        guard case .held(let held) = tokens, held > 0 else { return }
        let cost = RateCost(requests: 0, pulled: held)
        shard(of: device.caller).state.withLock { state in
            state.callers[device.caller]?.giveBack(cost)
            state.devices[device]?.giveBack(cost)
        }
    }

    /// Takes tokens for what a device pulled, down to as many below none as a full bucket has.
    func pulled(_ bytes: Int, by device: Device) {
        if bytes > 0 { charge(RateCost(requests: 0, pulled: bytes), to: device.caller, device) }
    }

    /// Takes tokens for what small rows count more than their bytes.
    func pulled(rows: Int, ofBytes bytes: Int, by device: Device) {
        if rows > Self.smallPage.rows { pulled(rows * Self.pulledRow - bytes, by: device) }
    }

    private func charge(_ cost: RateCost, to caller: SyncID, _ device: Device? = nil) {
        guard !fields.isEmpty else { return }
        let now = seconds()
        shard(of: caller).state.withLock { state in
            guard makeRoom(&state, now) else { return }
            state.callers[caller, default: TokenBuckets(at: now)].charge(cost, callerLimits, at: now)
            guard let device else { return }
            state.devices[device, default: TokenBuckets(at: now)].charge(cost, deviceLimits, at: now)
        }
    }

    /// The callers and devices that are tracked.
    var count: Int { shards.reduce(0) { $0 + $1.state.withLock { $0.count } } }

    private func seconds() -> Double {
        let (seconds, attoseconds) = clock.now().components
        return Double(seconds) + Double(attoseconds) * 1e-18
    }

    private func shard(of caller: SyncID) -> Shard {
        // Any spread will do, and this costs less than the hash of a dictionary.
        let hash = caller.text.utf8.reduce(UInt(0)) { $0 &* 31 &+ UInt($1) }
        return shards[Int(hash % UInt(Self.shardCount))]
    }

    /// The problem of the limit that takes longest to allow a cost, which one of them does not allow.
    private func refusal(
        of cost: RateCost, _ ofCaller: TokenBuckets, _ ofDevice: TokenBuckets?, isCounted: Bool = true
    ) -> Problem {
        let callerWaits = ofCaller.waits(for: cost, callerLimits)
        let deviceWaits = ofDevice?.waits(for: cost, deviceLimits) ?? .zero
        var longest = (limit: RateLimit.all[0], wait: 0.0)
        for limit in RateLimit.all {
            let wait = (limit.scope == .caller ? callerWaits : deviceWaits)[limit.unit.rawValue]
            if wait > longest.wait { longest = (limit, wait) }
        }
        let (limit, wait) = longest
        if isCounted { refusals[limit]?.add() }
        let allowance = limit.allowance(of: limit.scope == .caller ? callerRates : deviceRates)
        let seconds = max(1, Int(wait.rounded(.up)))
        var problem = Problem(.rateLimited, "this \(limit.scope) may \(allowance)", retryAfter: seconds)
        problem.headers = fields.status(of: limit, refusing: cost, ofCaller, ofDevice, seconds: seconds).fields
        return problem
    }

    /// Makes room for a caller and a device; `false` if all entries are needed.
    ///
    /// Entries are removed once they are twice as many as were left the last time, which costs each request little.
    private func makeRoom(_ state: inout State, _ now: Double) -> Bool {
        guard state.count + 2 > min(state.sweepAt, maximumOfShard) else { return true }
        guard state.count + 2 <= maximumOfShard || now - state.sweptAt >= Self.sweepInterval else { return false }
        state.sweptAt = now
        state.callers = state.callers.filter { !isFull($0.value, callerLimits, now) }
        state.devices = state.devices.filter { !isFull($0.value, deviceLimits, now) }
        state.sweepAt = max(Self.firstSweep, 2 * state.count)
        return state.count + 2 <= maximumOfShard
    }

    private func isFull(_ buckets: TokenBuckets, _ limits: TokenBuckets.Limits, _ now: Double) -> Bool {
        var buckets = buckets
        buckets.refill(limits, at: now)
        return buckets.areFull
    }
}
