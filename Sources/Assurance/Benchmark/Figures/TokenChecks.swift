import Gateway
import HTTP
import LoadTools
import TokenKeys
import WebTokens

/// What it costs to know the caller of a request by its token, without a server.
struct TokenChecks: Figure {
    let name = "tokens"
    let title = "callers of requests by their tokens, on one thread"

    func measure(_ bench: Bench) async throws -> FigureResult {
        let count = bench.scale.pick(20, 2000, 20_000)
        var measures: [Measure] = []
        var accepted = 0
        for algorithm in [SignatureAlgorithm.rs256, .es256, .edDSA] {
            // RSA keys of 2048 bits, as issuers have them.
            guard let key = SigningKey(generating: algorithm, id: "key") else { throw Unsupported() }
            let requests = try (0..<count).map { try Self.request($0, key) }
            let keys = IssuerKeys(
                FixedKeys(KeySet([])), keys: PublishedKeys(try KeySet(jwks: SigningKey.jwks([key]))))
            let measured = bench.scale.repetitions
            var first: [Double] = []
            var known: [Double] = []
            for _ in 0...measured {
                let authenticator = TokenAuthenticator(
                    policy: TokenPolicy(issuers: ["https://issuer.example/"], audiences: ["weir"]), keys: keys)
                let (cost, found) = try Self.microseconds(requests, authenticator)
                first.append(cost)
                accepted += found
                known.append(try Self.microseconds(requests, authenticator).cost)
            }
            let label = algorithm.rawValue.lowercased()
            // The first repetition warms up.
            measures.append(
                Measure(
                    "first_\(label)", Samples(first.dropFirst()), "us",
                    target: algorithm == .rs256 ? .atMost(200) : nil))
            measures.append(Measure("known_\(label)", Samples(known.dropFirst()), "us", target: .atMost(10)))
        }
        return FigureResult(
            measures: measures,
            checks: [
                Check(
                    name: "accepted tokens", expected: 3 * count * (bench.scale.repetitions + 1), found: accepted)
            ])
    }

    private struct Unsupported: Error {}

    /// A request with a token like those of usual issuers, of some 700 bytes.
    private static func request(_ number: Int, _ key: SigningKey) throws -> HTTPRequest {
        let claims = #"""
            {"iss":"https://issuer.example/","aud":"weir","sub":"owner-\#(number)","exp":4000000000,"iat":1700000000,
            "scope":"read write","links":{"team-1":"write","team-2":"read"},"email":"owner-\#(number)@example.com",
            "email_verified":true,"name":"A person of this example","auth_time":1700000000}
            """#
        guard let token = key.token(claims: Array(claims.utf8)),
            let request = HTTPRequest(
                direct: .post, "/v1/sync",
                headers: [("Content-Type", "application/json"), ("Authorization", "Bearer \(token)")])
        else { throw Unsupported() }
        return request
    }

    /// The mean cost of a request, and how many callers were known.
    private static func microseconds(
        _ requests: [HTTPRequest], _ authenticator: TokenAuthenticator
    ) throws -> (cost: Double, accepted: Int) {
        var accepted = 0
        let start = SystemCall.nanoseconds()
        for request in requests {
            if case .known = try authenticator.caller(of: request) { accepted += 1 }
        }
        return (SystemCall.seconds(since: start) * 1_000_000 / Double(requests.count), accepted)
    }
}
