import Digest
import Glibc
import HTTP
import Metrics
import Observability
import SyncModel
import TokenKeys
import WebTokens

/// Authenticates callers by signed bearer tokens (RFC 6750, RFC 7519); believes no other header.
package final class TokenAuthenticator: Authenticator {
    private let policy: TokenPolicy
    private let claims: ClaimNames
    private let keys: IssuerKeys
    private let verified: VerifiedTokens
    private let metrics: TokenMetrics
    private let logger: Logger
    private let now: @Sendable () -> Double

    /// - Parameters:
    ///   - keys: must run while the gateway does.
    ///   - cachedTokens: how many checked tokens are kept, and their most bytes.
    ///   - now: the time in seconds since 1970.
    package init(
        policy: TokenPolicy, claims: ClaimNames = ClaimNames(), keys: IssuerKeys,
        cachedTokens: (count: Int, bytes: Int) = (100_000, 64 << 20), metrics: TokenMetrics = TokenMetrics(),
        logger: Logger = .disabled, now: @escaping @Sendable () -> Double = TokenAuthenticator.wallClock
    ) {
        self.policy = policy
        self.claims = claims
        self.keys = keys
        verified = VerifiedTokens(count: cachedTokens.count, bytes: cachedTokens.bytes)
        self.metrics = metrics
        self.logger = logger
        self.now = now
    }

    package var trustsEveryCaller: Bool { false }

    /// The system's time in seconds since 1970.
    @Sendable package static func wallClock() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    package func caller(of request: HTTPRequest) throws(Problem) -> CallerLookup {
        do {
            return try lookup(try Self.bearer(request))
        } catch {
            throw problem(for: error)
        }
    }

    private func lookup(_ text: ArraySlice<UInt8>) throws -> CallerLookup {
        guard text.count <= SignedToken.maximumBytes else {
            throw TokenRefusal(.tooLarge, "it has \(text.count) bytes, at most \(SignedToken.maximumBytes) are allowed")
        }
        // The cache holds no tokens, which are secrets.
        let digest = KeyFingerprint(digest: SHA256.digest(of: text.span.bytes))
        if let token = verified[digest] {
            if keys.contains(token.key) { return .known(try caller(of: token)) }
            verified.remove(digest)
        }
        let token = try SignedToken(text)
        switch try keys.key(for: token) {
        case .found(let key): return .known(try check(token, key, digest))
        case .awaited:
            return .awaited {
                do {
                    return try self.check(token, try await self.keys.awaitedKey(for: token), digest)
                } catch {
                    throw self.problem(for: error)
                }
            }
        }
    }

    private func check(
        _ token: SignedToken, _ key: VerificationKey, _ digest: KeyFingerprint
    ) throws(TokenRefusal) -> Caller {
        metrics.checks.add()
        let claims = claims
        let (validity, caller) = try policy.check(token, with: key, at: now()) {
            (root) throws(TokenRefusal) in try claims.caller(in: root)
        }
        let checked = VerifiedToken(caller: caller, validity: validity, key: key.fingerprint)
        verified.insert(checked, for: digest)
        return try self.caller(of: checked)
    }

    private func caller(of token: VerifiedToken) throws(TokenRefusal) -> Caller {
        let now = now()
        try token.validity.check(at: now)
        return token.caller.valid(for: .milliseconds(Int((token.validity.end - now) * 1000)))
    }

    /// The token of a request: of its only header `Authorization`.
    private static func bearer(_ request: HTTPRequest) throws(TokenRefusal) -> ArraySlice<UInt8> {
        let headers = request.headers.all("authorization")
        guard let header = headers.first else { throw TokenRefusal(.missing, "there is no header Authorization") }
        guard headers.count == 1 else {
            throw TokenRefusal(.malformed, "there are \(headers.count) headers Authorization")
        }
        let scheme = header.prefix { $0 != UInt8(ascii: " ") }
        let isBearer =
            scheme.count == 6 && zip(scheme, "bearer".utf8).allSatisfy { $0 | 0x20 == $1 }
        guard isBearer else { throw TokenRefusal(.missing, "the header Authorization has no bearer token") }
        let token = header[scheme.endIndex...].drop { $0 == UInt8(ascii: " ") }
        guard !token.isEmpty else { throw TokenRefusal(.missing, "the bearer token is empty") }
        return token
    }

    /// What a stranger is told: the cause, and nothing else.
    private func problem(for error: any Error) -> Problem {
        switch error {
        case let problem as Problem: return problem
        case let refusal as TokenRefusal:
            metrics.refusals[refusal.cause]?.add()
            logger.debug(
                "A token is refused", [.code: .string(refusal.cause.rawValue), .reason: .string(refusal.detail)])
            var problem = Problem(
                .unauthenticated,
                refusal.cause == .missing ? "the request has no bearer token" : "the bearer token is not accepted")
            problem.cause = refusal.cause
            // Without a token no error is named (RFC 6750, 3.1).
            problem.headers = [
                HTTPField(
                    "WWW-Authenticate",
                    refusal.cause == .missing
                        ? "Bearer"
                        : "Bearer error=\"invalid_token\", error_description=\"\(refusal.cause.rawValue)\"")
            ]
            return problem
        case let unavailable as IssuerKeys.Unavailable:
            let seconds = Int(unavailable.retryAfter.components.seconds) + 1
            return Problem(.notReady, "tokens cannot be checked at the moment", retryAfter: min(seconds, 60))
        default: return Problem(.notReady, "the request was cancelled")
        }
    }
}
