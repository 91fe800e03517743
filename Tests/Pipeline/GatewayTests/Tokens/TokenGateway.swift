import AsyncPrimitives
import Gateway
import HTTPDownload
import Metrics
import Observability
import TestAuthority
import TestClocks
import TestSignals
import Testing
import TokenKeys
import WebTokens

/// A gateway that checks tokens with the keys of an authority, which it reads over HTTP.
struct TokenGateway: Sendable {
    /// The time at which the clock of the tokens starts.
    static let start = 1_700_000_000.0
    static let key = SigningKey(generating: .es256, id: "one")!

    let gateway: TestGateway
    let authority: TestAuthority
    /// Measures the age of keys, and tells the time to tokens.
    let clock: ManualClock
    let keys: IssuerKeys
    let registry: MetricRegistry
    /// Whether each reading of the keys succeeded.
    let readings: Signal<Bool>

    struct Setup: Sendable {
        var policy = TokenPolicy(issuers: ["https://issuer"], audiences: ["weir"], leeway: 60)
        var claims = ClaimNames()
        var keys = IssuerKeysSettings()
        var cachedTokens = (count: 1000, bytes: 1 << 20)
        var logger = Logger.disabled
        var published: [SigningKey] = [TokenGateway.key]
        var gateway: @Sendable (inout TestGateway.Setup) -> Void = { _ in }
    }

    /// A token with usual claims, and others in place of them or beside them.
    static func token(
        _ claims: KeyValuePairs<String, String> = [:], key: SigningKey = key,
        header: KeyValuePairs<String, String> = [:]
    ) -> String {
        var members = [
            ("iss", "\"https://issuer\""), ("aud", "\"weir\""), ("sub", "\"abc\""), ("exp", "1700003600"),
        ]
        for (name, value) in claims {
            members.removeAll { $0.0 == name }
            if !value.isEmpty { members.append((name, value)) }
        }
        let text = "{" + members.map { "\"\($0)\":\($1)" }.joined(separator: ",") + "}"
        return key.token(claims: Array(text.utf8), header: header)!
    }

    /// One exchange over a connection of its own.
    func exchange(
        _ token: String?, _ method: String = "POST", _ target: String = "/v1/pull", headers: [String] = [],
        _ body: String? = #"{"knowledgeId":"k1"}"#
    ) async throws -> HTTPClient.Answer {
        let authorization = token.map { ["Authorization: Bearer \($0)"] } ?? []
        return try await gateway.exchange(
            method, target, as: nil, headers: authorization + headers, method == "GET" ? nil : body)
    }

    func refusals(_ cause: TokenRefusal.Cause) -> Int {
        registry.counter(.gatewayTokenRefusals, [.cause: cause.rawValue]).value
    }

    /// Signatures that were checked.
    var checks: Int { registry.counter(.gatewayTokenChecks).value }
}

/// Runs a gateway, an authority and the reading of its keys for the time of a test; the keys have been read once.
func withTokens(
    _ prepare: (inout TokenGateway.Setup) -> Void = { _ in }, test: (TokenGateway) async throws -> Void
) async throws {
    var setup = TokenGateway.Setup()
    prepare(&setup)
    let (authority, clock, registry) = (try TestAuthority(), ManualClock(), MetricRegistry())
    authority.respond(.init(body: SigningKey.jwks(setup.published)))
    let url = try #require(DownloadURL(authority.url))
    let readings = Signal<Bool>()
    let keys = IssuerKeys(
        try WebKeySource(url, .jwks, limits: DownloadLimits()), settings: setup.keys, clock: clock
    ) { readings.send($0) }
    let running = Task { try await keys.run() }
    _ = await readings.next()
    let tokens = TokenAuthenticator(
        policy: setup.policy, claims: setup.claims, keys: keys, cachedTokens: setup.cachedTokens,
        metrics: TokenMetrics(registry), logger: setup.logger,
        now: { TokenGateway.start + clock.now.offset / .seconds(1) })
    let result = await Result.capturing {
        try await withGateway {
            setup.gateway(&$0)
            $0.authentication.tokens = tokens
        } test: {
            try await test(
                TokenGateway(
                    gateway: $0, authority: authority, clock: clock, keys: keys, registry: registry,
                    readings: readings))
        }
    }
    running.cancel()
    authority.release()
    try await running.value
    await authority.stop()
    try result.get()
}
