import HTTP

/// One limit of a rate; its name is that of its policy in headers, and of its label in metrics.
struct RateLimit: Sendable, Hashable {
    enum Scope: Sendable {
        case caller
        case device
    }

    let scope: Scope
    let unit: RateUnit

    var name: String { "\(scope)-\(unit)" }

    static let all = [Scope.caller, .device].flatMap { scope in
        RateUnit.allCases.map { RateLimit(scope: scope, unit: $0) }
    }
}

/// What the headers of a response say of the limits (draft-ietf-httpapi-ratelimit-headers-10).
struct RateLimitStatus: Sendable {
    fileprivate let policies: String
    fileprivate let policy: String
    /// Tokens that are left of the policy.
    fileprivate let remaining: Int
    /// Seconds until the bucket is full; for a refused request, until it may be repeated.
    fileprivate let seconds: Int

    var fields: [HTTPField] {
        [
            HTTPField("RateLimit-Policy", policies),
            HTTPField("RateLimit", policy + String(remaining) + ";t=" + String(seconds)),
        ]
    }
}

/// Makes the headers of responses to requests that limits apply to.
struct RateLimitFields: Sendable {
    private struct Policy {
        let limit: RateLimit
        let rates: Rates
        let capacity: Double
        /// The value of `RateLimit` up to the tokens that are left.
        let prefix: String
    }

    private let policies: [Policy]
    /// The values of `RateLimit-Policy`: by whether the request is an upload, and has a device.
    private let texts: [String]

    init(caller: Rates, device: Rates) {
        policies = RateLimit.all.compactMap { limit in
            let rates = limit.scope == .caller ? caller : device
            guard rates[limit.unit] > 0 else { return nil }
            return Policy(
                limit: limit, rates: rates, capacity: TokenBuckets.capacity(limit.unit, rates),
                prefix: "\"\(limit.name)\";r=")
        }
        texts = [(false, false), (false, true), (true, false), (true, true)].map { [policies] isUpload, hasDevice in
            policies.filter { Self.applies($0.limit, isUpload, hasDevice) }.map(Self.text).joined(separator: ", ")
        }
    }

    /// Whether nothing is limited.
    var isEmpty: Bool { policies.isEmpty }

    /// The status of the limit with the least share of tokens left; `nil` if none applies.
    func status(after cost: RateCost, _ ofCaller: TokenBuckets, _ ofDevice: TokenBuckets?) -> RateLimitStatus? {
        var least: (policy: Policy, tokens: Double, untilFull: Double, share: Double)?
        for policy in policies where Self.applies(policy.limit, cost.isUpload, ofDevice != nil) {
            guard let buckets = policy.limit.scope == .caller ? ofCaller : ofDevice else { continue }
            let (tokens, untilFull) = buckets.level(policy.limit.unit, policy.rates)
            let share = tokens / policy.capacity
            if share < least?.share ?? .infinity { least = (policy, tokens, untilFull, share) }
        }
        return least.map { least in
            RateLimitStatus(
                policies: text(cost.isUpload, ofDevice != nil), policy: least.policy.prefix,
                remaining: Int(least.tokens), seconds: Int(least.untilFull.rounded(.up)))
        }
    }

    func status(
        of limit: RateLimit, tokens: Double, seconds: Int, isUpload: Bool, hasDevice: Bool
    ) -> RateLimitStatus {
        RateLimitStatus(
            policies: text(isUpload, hasDevice), policy: "\"\(limit.name)\";r=", remaining: Int(tokens),
            seconds: seconds)
    }

    private func text(_ isUpload: Bool, _ hasDevice: Bool) -> String { texts[(isUpload ? 2 : 0) + (hasDevice ? 1 : 0)] }

    private static func applies(_ limit: RateLimit, _ isUpload: Bool, _ hasDevice: Bool) -> Bool {
        (limit.unit == .requests || isUpload) && (limit.scope == .caller || hasDevice)
    }

    private static func text(_ policy: Policy) -> String {
        // Without a unit of its own, a policy counts requests.
        let unit =
            switch policy.limit.unit {
            case .requests: ""
            case .changes: ";qu=\"changes\""
            case .bytes: ";qu=\"content-bytes\""
            }
        return "\"\(policy.limit.name)\";q=\(Int(policy.capacity));w=\(TokenBuckets.seconds)\(unit)"
    }
}

extension RateCost {
    /// Whether the limits of uploads apply.
    var isUpload: Bool { changes > 0 || bytes > 0 }
}

extension HTTPHandlerResult {
    /// Adds the headers about the limits to a response.
    func adding(_ status: RateLimitStatus?) -> HTTPHandlerResult {
        guard let status else { return self }
        switch self {
        case .response(var response):
            response.headers += status.fields
            return .response(response)
        case .task(let work):
            return .task {
                var response = await work()
                response.headers += status.fields
                return response
            }
        }
    }
}
