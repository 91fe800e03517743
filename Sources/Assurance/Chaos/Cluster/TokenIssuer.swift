import Glibc
import LoadTools
import SyncModel
import Synchronization
import WebTokens

/// The issuer of the devices' tokens, which begins to sign with another key again and again.
///
/// As issuers do: a key is published one period before it signs, and for one period after.
final class TokenIssuer: Sendable {
    /// Seconds that a key signs: several of the gateways' readings of the file.
    static let period = 20
    private static let issuer = "https://issuer.example/"
    private static let audience = "weir"
    /// Seconds that a token is valid.
    private static let validity = 60

    private struct State {
        var signing: SigningKey
        var next: SigningKey
        var count = 2
    }

    private let folder: WorkFolder
    private let path: String
    private let state: Mutex<State>

    init(in folder: WorkFolder) throws {
        self.folder = folder
        path = folder.path + "/keys.json"
        let (first, second) = (try Self.key(1), try Self.key(2))
        state = Mutex(State(signing: first, next: second))
        try publish([first, second])
    }

    /// The flags of the gateways.
    var flags: [String] {
        [
            "--auth", "jwt", "--auth.jwks-file", path, "--auth.issuer", Self.issuer, "--auth.audience", Self.audience,
        ]
    }

    /// Signs with the next key from now on.
    func rotate() throws {
        let keys = try state.withLock { state in
            let before = state.signing
            state.signing = state.next
            state.count += 1
            state.next = try Self.key(state.count)
            return [before, state.signing, state.next]
        }
        try publish(keys)
    }

    /// A token of a caller.
    ///
    /// - Parameters:
    ///   - device: the only one that it is for; `nil`: any.
    ///   - links: other owners with their access, as `write`.
    func token(
        _ caller: SyncID, device: String?, links: [(owner: SyncID, access: String)], scope: String = "read write"
    ) throws -> String {
        let members = [
            #""iss":"\#(Self.issuer)","aud":"\#(Self.audience)","sub":"\#(caller)","exp":\#(time(nil) + Self.validity)"#,
            #""scope":"\#(scope)","links":{\#(links.map { #""\#($0.owner)":"\#($0.access)""# }.joined(separator: ","))}"#,
        ]
        let claims = "{" + (members + (device.map { [#""did":"\#($0)""#] } ?? [])).joined(separator: ",") + "}"
        let key = state.withLock { $0.signing }
        guard let token = key.token(claims: Array(claims.utf8)) else { throw LoadFailure("a token cannot be signed") }
        return token
    }

    private static func key(_ number: Int) throws -> SigningKey {
        guard let key = SigningKey(generating: .es256, id: "key-\(number)") else {
            throw LoadFailure("no key can be made")
        }
        return key
    }

    /// Replaces the file at once, so that no gateway reads a part of it.
    private func publish(_ keys: [SigningKey]) throws {
        let text = String(decoding: SigningKey.jwks(keys), as: UTF8.self)
        let new = try folder.write(text, to: "keys.json.new")
        guard rename(new, path) == 0 else { throw LoadFailure.system("renaming \(new)", errno) }
    }
}
