/// What a limit of a rate counts.
enum RateUnit: Int, CaseIterable, Sendable {
    case requests
    case changes
    /// Of bodies of uploads, decompressed.
    case bytes
}

/// What one caller or one device may use in a second; 0: any number.
package struct Rates: Sendable, Hashable {
    package var requests: Int
    package var changes: Int
    package var bytes: Int

    package init(requests: Int = 0, changes: Int = 0, bytes: Int = 0) {
        self.requests = requests
        self.changes = changes
        self.bytes = bytes
    }

    subscript(unit: RateUnit) -> Int {
        switch unit {
        case .requests: requests
        case .changes: changes
        case .bytes: bytes
        }
    }
}

/// What a request uses of each limit.
struct RateCost: Sendable {
    var changes = 0
    var bytes = 0

    static let request = RateCost()

    subscript(unit: RateUnit) -> Double {
        switch unit {
        case .requests: 1
        case .changes: Double(changes)
        case .bytes: Double(bytes)
        }
    }
}

/// The token buckets of one caller or device, one of each unit.
///
/// A bucket holds ten seconds of its rate. A cost that is larger than the bucket is accepted when the bucket is full, and is refilled
/// afterwards as if it had been saved up.
struct TokenBuckets: Sendable {
    static let seconds = 10

    /// Tokens are fractions: below this, a difference is an error of rounding.
    private static let precision = 1e-6

    /// How many tokens each bucket lacks, so that a new one is full whatever its rate.
    private var missing = SIMD3<Double>.zero
    /// In seconds.
    private var refilled: Double

    init(at now: Double) { refilled = now }

    mutating func refill(_ rates: Rates, at now: Double) {
        let elapsed = max(0, now - refilled)
        refilled = max(refilled, now)
        for unit in RateUnit.allCases {
            missing[unit.rawValue] = max(0, missing[unit.rawValue] - elapsed * Double(rates[unit]))
        }
    }

    /// Takes the tokens, which may leave fewer than none.
    mutating func take(_ cost: RateCost, _ rates: Rates) {
        for unit in RateUnit.allCases where rates[unit] > 0 { missing[unit.rawValue] += cost[unit] }
    }

    /// Seconds until a bucket has the tokens for a cost; 0 if it has them.
    func wait(for cost: RateCost, _ unit: RateUnit, _ rates: Rates) -> Double {
        guard rates[unit] > 0, cost[unit] > 0 else { return 0 }
        let capacity = Self.capacity(unit, rates)
        let lacking = missing[unit.rawValue] + min(cost[unit], capacity) - capacity
        return lacking > Self.precision ? lacking / Double(rates[unit]) : 0
    }

    /// The tokens of a bucket, at least 0, and the seconds until it is full.
    func level(_ unit: RateUnit, _ rates: Rates) -> (tokens: Double, untilFull: Double) {
        let missing = missing[unit.rawValue]
        return (max(0, Self.capacity(unit, rates) - missing), missing / Double(rates[unit]))
    }

    /// Whether every bucket is full, as that of a caller or device without an entry.
    var areFull: Bool { missing == .zero }

    static func capacity(_ unit: RateUnit, _ rates: Rates) -> Double { Double(rates[unit]) * Double(seconds) }
}
