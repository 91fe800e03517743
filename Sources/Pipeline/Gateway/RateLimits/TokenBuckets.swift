/// What a limit of a rate counts; its raw value is its lane in vectors.
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

/// Numbers of each unit; the last lane is not used.
typealias RateVector = SIMD4<Double>

/// What a request uses of each limit.
struct RateCost: Sendable {
    let vector: RateVector
    /// Whether the limits of uploads apply.
    let isUpload: Bool

    static let request = RateCost()

    init(changes: Int = 0, bytes: Int = 0, requests: Int = 1) {
        vector = RateVector(Double(requests), Double(changes), Double(bytes), 0)
        isUpload = changes > 0 || bytes > 0
    }
}

/// The token buckets of one caller or device, one of each unit.
///
/// A bucket holds ten seconds of its rate. A cost that is larger than the bucket is accepted when the bucket is full, and is refilled
/// afterwards as if it had been saved up.
struct TokenBuckets: Sendable {
    /// The rates of all callers or of all devices.
    struct Limits: Sendable {
        let perSecond: RateVector
        let capacity: RateVector

        init(_ rates: Rates) {
            perSecond = RateVector(Double(rates.requests), Double(rates.changes), Double(rates.bytes), 0)
            capacity = perSecond * Double(TokenBuckets.seconds)
        }

        fileprivate var isLimited: SIMDMask<SIMD4<Int64>> { perSecond .> 0 }
    }

    static let seconds = 10

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
