import SyncModel

/// What a limit of a rate counts; its raw value is its lane in vectors.
enum RateUnit: Int, CaseIterable, Sendable {
    case requests
    case changes
    /// Of bodies of uploads, decompressed, and of the rows that their changes touched.
    case bytes
    /// That uploads take in the log; of a caller alone.
    case dailyBytes
    /// Of responses above 64 KiB and of those that are sent in pieces, before they are compressed.
    case pulledBytes

    /// The seconds in which as much may be used as ``Rates`` say.
    var period: Int { self == .dailyBytes ? 86_400 : 1 }

    /// The seconds whose share a bucket holds.
    var window: Int { self == .dailyBytes ? 86_400 : 10 }
}

/// What one caller or one device may use in a second, and of the log in a day; 0: any number.
package struct Rates: Sendable, Hashable {
    package var requests: Int
    package var changes: Int
    package var bytes: Int
    /// Of a caller alone.
    package var dailyBytes: Int
    package var pulledBytes: Int

    package init(
        requests: Int = 0, changes: Int = 0, bytes: Int = 0, dailyBytes: Int = 0, pulledBytes: Int = 0
    ) {
        self.requests = requests
        self.changes = changes
        self.bytes = bytes
        self.dailyBytes = dailyBytes
        self.pulledBytes = pulledBytes
    }

    subscript(unit: RateUnit) -> Int {
        switch unit {
        case .requests: requests
        case .changes: changes
        case .bytes: bytes
        case .dailyBytes: dailyBytes
        case .pulledBytes: pulledBytes
        }
    }

    /// What may be used at once, of what was saved up.
    func capacity(of unit: RateUnit) -> Int { self[unit] * (unit.window / unit.period) }
}

/// Numbers of each unit.
typealias RateVector = SIMD8<Double>

/// What a request uses of each limit.
struct RateCost: Sendable {
    let vector: RateVector
    /// Whether the limits of uploads apply.
    let isUpload: Bool
    /// Whether the limits of pulls apply.
    let isPull: Bool

    static let none = RateCost(requests: 0)
    static let request = RateCost()
    /// Of a request that pulls; how much is not known before.
    static let pull = RateCost(isPull: true)
    /// What must be left before another protocol's rows, or a piece of a file, are read.
    static let piece = RateCost(requests: 0, pulled: 1)

    /// - Parameters:
    ///   - logged: the bytes that an upload takes in the log; none of a file, which replaces the one before.
    ///   - pulled: below 0 where as much may be owed.
    init(
        changes: Int = 0, bytes: Int = 0, requests: Int = 1, logged: Int = 0, pulled: Int = 0, isPull: Bool = false
    ) {
        var vector = RateVector.zero
        vector[RateUnit.requests.rawValue] = Double(requests)
        vector[RateUnit.changes.rawValue] = Double(changes)
        vector[RateUnit.bytes.rawValue] = Double(bytes)
        vector[RateUnit.dailyBytes.rawValue] = Double(logged)
        vector[RateUnit.pulledBytes.rawValue] = Double(pulled)
        self.vector = vector
        isUpload = changes > 0 || bytes > 0
        self.isPull = isPull || pulled != 0
    }

    /// About what an upload takes in the log at least: its changes, a result or refusal of each, its names and grants.
    ///
    /// Without the constants a caller could fill the log with changes of a byte, and with uploads of no change.
    static func logged(bytes: Int, changes: Int, of caller: Caller) -> Int {
        bytes + 64 * changes + caller.grants.reduce(512) { $0 + $1.owner.text.utf8.count }
    }
}

/// The token buckets of one caller or device, one of each unit.
///
/// A bucket holds ten seconds of its rate, that of a day a whole day. A cost that is larger than the bucket is accepted when the
/// bucket is full, and is refilled afterwards as if it had been saved up.
struct TokenBuckets: Sendable {
    /// The rates of all callers or of all devices.
    struct Limits: Sendable {
        let perSecond: RateVector
        let capacity: RateVector

        init(_ rates: Rates) {
            var (perSecond, capacity) = (RateVector.zero, RateVector.zero)
            for unit in RateUnit.allCases {
                perSecond[unit.rawValue] = Double(rates[unit]) / Double(unit.period)
                capacity[unit.rawValue] = Double(rates.capacity(of: unit))
            }
            (self.perSecond, self.capacity) = (perSecond, capacity)
        }

        fileprivate var isLimited: SIMDMask<SIMD8<Int64>> { perSecond .> 0 }
    }

    /// Tokens are fractions: below this, a difference is an error of rounding.
    private static let precision = 1e-6

    /// How many tokens each bucket lacks, so that a new one is full whatever its rate.
    private(set) var missing = RateVector.zero
    /// In seconds.
    private var refilled: Double

    init(at now: Double) { refilled = now }

    mutating func refill(_ limits: Limits, at now: Double) {
        let elapsed = max(0, now - refilled)
        refilled = max(refilled, now)
        missing = pointwiseMax(missing - limits.perSecond * elapsed, .zero)
    }

    /// Takes the tokens, which may leave fewer than none.
    mutating func take(_ cost: RateCost, _ limits: Limits) {
        missing += cost.vector.replacing(with: 0, where: .!limits.isLimited)
    }

    /// As if a cost had not been taken.
    mutating func giveBack(_ cost: RateCost) { missing = pointwiseMax(missing - cost.vector, .zero) }

    /// Takes the tokens of what was done already, down to as many below none as a full bucket has.
    mutating func charge(_ cost: RateCost, _ limits: Limits, at now: Double) {
        refill(limits, at: now)
        let most = pointwiseMax(missing, limits.capacity * 2)
        take(cost, limits)
        missing = pointwiseMin(missing, most)
    }

    /// Whether all buckets have the tokens for a cost.
    func allow(_ cost: RateCost, _ limits: Limits) -> Bool { lacking(cost, limits) == .zero }

    /// The seconds until each bucket has the tokens for a cost; 0 where it has them.
    func waits(for cost: RateCost, _ limits: Limits) -> RateVector {
        lacking(cost, limits) / limits.perSecond.replacing(with: 1, where: .!limits.isLimited)
    }

    private func lacking(_ cost: RateCost, _ limits: Limits) -> RateVector {
        let lacking = missing + pointwiseMin(cost.vector, limits.capacity) - limits.capacity
        return lacking.replacing(
            with: 0, where: .!limits.isLimited .| (cost.vector .== 0) .| (lacking .<= Self.precision))
    }

    /// Whether every bucket is full, as that of a caller or device without an entry.
    var areFull: Bool { missing == .zero }
}
