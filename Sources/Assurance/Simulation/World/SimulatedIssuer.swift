import Gateway
import SyncModel
import TokenKeys
import WebTokens

/// The issuer of the devices' tokens, and what gateways check them with.
///
/// Tokens are signed with a secret, since signatures of other keys differ from run to run.
struct SimulatedIssuer: Sendable {
    /// Seconds that a token is valid; a device has a new one after half of them, so that no long poll ends with its token.
    private static let validity = 240.0
    private static let start = 1_700_000_000.0
    private static let secret = Array(repeating: UInt8(ascii: "s"), count: 32)

    /// A device's token and what it is for.
    struct Token: Sendable {
        let text: String
        fileprivate let claims: String
        fileprivate let issued: Double
    }

    /// Makes what a gateway checks tokens with.
    func authenticator(_ clock: SimulatedClock) -> TokenAuthenticator {
        let keys = KeySet(VerificationKey(secret: Self.secret).map { [$0] } ?? [])
        return TokenAuthenticator(
            policy: TokenPolicy(leeway: 0),
            keys: IssuerKeys(FixedKeys(keys), keys: PublishedKeys(keys), clock: clock),
            now: { Self.start + clock.now.time / .seconds(1) })
    }

    /// The token for a request: the earlier one while it is new and for the same.
    ///
    /// - Parameter device: the only one that it is for; `nil`: any.
    func token(
        _ earlier: Token?, for caller: SyncID, device: String?, links: [(owner: SyncID, access: String)],
        at time: Duration
    ) -> Token? {
        let now = Self.start + time / .seconds(1)
        let names = links.map { #""\#($0.owner)":"\#($0.access)""# }.joined(separator: ",")
        let claims = #""sub":"\#(caller)","links":{\#(names)}"# + (device.map { #","did":"\#($0)""# } ?? "")
        if let earlier, earlier.claims == claims, now - earlier.issued < Self.validity / 2 { return earlier }
        let text = "{\(claims),\"exp\":\(Int64(now + Self.validity))}"
        return SigningKey(secret: Self.secret)?.token(claims: Array(text.utf8)).map {
            Token(text: $0, claims: claims, issued: now)
        }
    }
}
