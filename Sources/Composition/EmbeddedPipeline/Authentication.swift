import Gateway
import HTTP
import Metrics
import Observability
import ServiceLifecycle
import TokenKeys

/// The authenticator that the settings choose.
enum ConfiguredAuthenticator: Authenticator {
    case none(NoAuthentication)
    case tokens(TokenAuthenticator)

    var trustsEveryCaller: Bool {
        switch self {
        case .none(let authenticator): authenticator.trustsEveryCaller
        case .tokens(let authenticator): authenticator.trustsEveryCaller
        }
    }

    func caller(of request: HTTPRequest) throws(Problem) -> CallerLookup {
        switch self {
        case .none(let authenticator): try authenticator.caller(of: request)
        case .tokens(let authenticator): try authenticator.caller(of: request)
        }
    }
}

/// How callers of this process are authenticated, and the keys that it needs for that.
struct Authentication: Sendable {
    let authenticator: ConfiguredAuthenticator
    /// `nil` where nobody has to prove an identity.
    private let keys: IssuerKeys?
    private let requiresFirstReading: Bool

    init(_ settings: AuthenticationConfiguration, metrics registry: MetricRegistry, logger: Logger) throws {
        let metrics = TokenMetrics(registry)
        guard let source = try settings.keySource() else {
            authenticator = .none(NoAuthentication())
            keys = nil
            requiresFirstReading = false
            registry.collect { samples in
                samples.set(.gatewayKeys, 0)
                samples.set(.gatewayKeyAge, 0)
            }
            return
        }
        let keys = IssuerKeys(source, settings: settings.keySettings, logger: logger) {
            metrics.recordReading(succeeded: $0)
        }
        registry.collect { samples in
            let status = keys.status
            samples.set(.gatewayKeys, status.count ?? 0)
            samples.set(.gatewayKeyAge, (status.age ?? .zero) / .seconds(1))
        }
        self.keys = keys
        // A file that cannot be read is a mistake; a server may be down for a while.
        if case .url = settings.keys { requiresFirstReading = false } else { requiresFirstReading = true }
        authenticator = .tokens(
            TokenAuthenticator(
                policy: settings.policy, claims: settings.claims, keys: keys, cachedTokens: settings.cachedTokens,
                metrics: metrics, logger: logger))
    }

    /// The service that reads the keys, if there are any.
    var services: [ServiceGroup.Member] {
        guard let keys else { return [] }
        return [
            .init(
                "keys",
                CancelledService { [requiresFirstReading] in
                    try await keys.run(requiringFirst: requiresFirstReading)
                })
        ]
    }

    func addProbe(to readiness: Readiness) {
        guard let keys else { return }
        readiness.addProbe("keys") { keys.status.reason }
    }
}
