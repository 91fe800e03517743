import HTTP

/// One limit of a rate; its name is that of its policy in headers, and of its label in metrics.
struct RateLimit: Sendable, Hashable {
    enum Scope: Sendable {
        case caller
        case device
    }

    let scope: Scope
    let unit: RateUnit

    var name: String {
        switch unit {
        case .requests, .changes, .bytes: "\(scope)-\(unit)"
        case .dailyBytes: "\(scope)-daily-bytes"
        case .pulledBytes: "\(scope)-pulled-bytes"
        }
    }

    static let all = [Scope.caller, .device].flatMap { scope in
        RateUnit.allCases.filter { scope == .caller || $0 != .dailyBytes }.map { RateLimit(scope: scope, unit: $0) }
    }

    /// What may be done, for the detail of a problem.
    func allowance(of rates: Rates) -> String {
        switch unit {
        case .requests, .changes: "send \(rates[unit]) \(unit) per second"
        case .bytes: "send or touch \(rates[unit]) bytes per second"
        case .dailyBytes: "send \(rates[unit]) bytes of changes a day"
        case .pulledBytes: "pull \(rates[unit]) bytes per second"
        }
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

    fileprivate static let name = "RateLimit"

    var fields: [HTTPField] {
        [
            HTTPField("RateLimit-Policy", policies),
            HTTPField(Self.name, policy + String(remaining) + ";t=" + String(seconds)),
        ]
    }
}

/// Makes the headers of responses to requests that limits apply to.
struct RateLimitFields: Sendable {
    /// What applies to requests of a kind: uploads or not, pulls or not, of a known device or not.
    private struct Kind {
        let limits: [RateLimit]
        /// The value of `RateLimit-Policy`.
        let policies: String
    }

    // The bits of the index of a kind.
    private static let (upload, pull, device) = (1, 2, 4)
    private let kinds: [Kind]
    private let caller: TokenBuckets.Limits
    private let device: TokenBuckets.Limits
    /// The values of `RateLimit` up to the tokens that are left.
    private let prefixes: [RateLimit: String]
    /// Whether nothing is limited.
    let isEmpty: Bool

    init(caller: Rates, device: Rates) {
        let limited = RateLimit.all.filter { ($0.scope == .caller ? caller : device)[$0.unit] > 0 }
        isEmpty = limited.isEmpty
        kinds = (0..<8).map { kind in
            let limits = limited.filter { limit in
                let applies =
                    switch limit.unit {
                    case .requests: true
                    case .changes, .bytes, .dailyBytes: kind & Self.upload != 0
                    case .pulledBytes: kind & Self.pull != 0
                    }
                return applies && (limit.scope == .caller || kind & Self.device != 0)
            }
            let texts = limits.map { Self.policy($0, $0.scope == .caller ? caller : device) }
            return Kind(limits: limits, policies: texts.joined(separator: ", "))
        }
        self.caller = TokenBuckets.Limits(caller)
        self.device = TokenBuckets.Limits(device)
        prefixes = Dictionary(uniqueKeysWithValues: limited.map { ($0, "\"\($0.name)\";r=") })
    }

    /// The status of the limit with the least share of tokens left; `nil` if none applies.
    func status(after cost: RateCost, _ ofCaller: TokenBuckets, _ ofDevice: TokenBuckets?) -> RateLimitStatus? {
        let kind = kind(cost, ofDevice)
        var least: (limit: RateLimit, missing: Double, capacity: Double)?
        for limit in kind.limits {
            let lane = limit.unit.rawValue
            let missing = (limit.scope == .caller ? ofCaller : ofDevice ?? ofCaller).missing[lane]
            let capacity = (limit.scope == .caller ? caller : device).capacity[lane]
            // Compares the missing shares without a division.
            if let found = least, missing * found.capacity <= found.missing * capacity { continue }
            least = (limit, missing, capacity)
        }
        guard let (limit, missing, capacity) = least else { return nil }
        let untilFull = missing / (limit.scope == .caller ? caller : device).perSecond[limit.unit.rawValue]
        return RateLimitStatus(
            policies: kind.policies, policy: prefixes[limit] ?? "", remaining: Int(max(0, capacity - missing)),
            seconds: Int(untilFull.rounded(.up)))
    }

    /// The status of a limit that refuses a request, until it may be repeated.
    func status(
        of limit: RateLimit, refusing cost: RateCost, _ ofCaller: TokenBuckets, _ ofDevice: TokenBuckets?, seconds: Int
    ) -> RateLimitStatus {
        let lane = limit.unit.rawValue
        let missing = (limit.scope == .caller ? ofCaller : ofDevice ?? ofCaller).missing[lane]
        let capacity = (limit.scope == .caller ? caller : device).capacity[lane]
        return RateLimitStatus(
            policies: kind(cost, ofDevice).policies, policy: prefixes[limit] ?? "",
            remaining: Int(max(0, capacity - missing)), seconds: seconds)
    }

    private func kind(_ cost: RateCost, _ ofDevice: TokenBuckets?) -> Kind {
        kinds[(cost.isUpload ? Self.upload : 0) | (cost.isPull ? Self.pull : 0) | (ofDevice == nil ? 0 : Self.device)]
    }

    private static func policy(_ limit: RateLimit, _ rates: Rates) -> String {
        // Without a unit of its own, a policy counts requests.
        let unit =
            switch limit.unit {
            case .requests: ""
            case .changes: ";qu=\"changes\""
            case .bytes, .dailyBytes, .pulledBytes: ";qu=\"content-bytes\""
            }
        return "\"\(limit.name)\";q=\(rates.capacity(of: limit.unit));w=\(limit.unit.window)\(unit)"
    }
}

extension Problem {
    /// Adds the headers about the limits.
    func adding(_ status: RateLimitStatus?) -> Problem {
        var problem = self
        problem.headers += status?.fields ?? []
        return problem
    }
}

extension HTTPResponse {
    fileprivate func adding(_ status: RateLimitStatus) -> HTTPResponse {
        if self.status == 429, headers.contains(where: { $0.name == RateLimitStatus.name }) { return self }
        var response = self
        response.headers += status.fields
        return response
    }
}

extension HTTPHandlerResult {
    /// Adds the headers about the limits to a response, but for one that a limit has refused in the meantime.
    func adding(_ status: RateLimitStatus?) -> HTTPHandlerResult {
        guard let status else { return self }
        switch self {
        case .response(let response): return .response(response.adding(status))
        case .task(let work): return .task { await work().adding(status) }
        }
    }
}
