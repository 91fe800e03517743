import Commands
import Configuration
import Foundation
import Gateway
import JSON
import SyncModel
import TokenKeys
import WebTokens

/// `weir token create`, `weir token check` and `weir token key`.
enum TokenCommand {
    static let command = Command(
        "token", "Make and explain the tokens of callers.",
        subcommands: [
            Command(
                "create", "Sign a token, for development.", Weir.Action { try create($0) },
                arguments: [.one("SYNC_ID", "The caller's syncId.")], options: ownOfCreate + options,
                discussion: """
                    Signs with the private key of --key, or with auth.secret. The claims have the names of the settings
                    auth.claim.…, the first auth.issuer and the first auth.audience. Prints the token alone.
                    """),
            Command(
                "check", "Say whether a server with these settings accepts a token, and why not.",
                Weir.Action { try await check($0) },
                arguments: [.optional("TOKEN", "The token; without it, or for -, the first line of standard input.")],
                options: options,
                discussion: """
                    Reads the keys as the server does. Exit codes: 0 accepted, 1 refused, 2 the keys cannot be read. Other users of
                    this machine can see a token that is given as an argument.
                    """),
            Command(
                "key", "Make a key pair for tokens.", Weir.Action { try key($0) },
                arguments: [
                    .one("NAME", "Of the files: NAME.pem for the private key, NAME.jwks.json for the public one.")
                ],
                options: [algorithm]),
        ])

    private static let options = Settings.schema.options { _ = $0.read(AuthenticationConfiguration.self) }

    private static let key = CommandOption("key", .required("FILE"), "The private key in PEM to sign with.")
    private static let keyID = CommandOption(
        "key-id", .required("TEXT"), "The key's name (kid); by default its thumbprint, as weir token key names it.")
    private static let device = CommandOption(
        "device", .required("TEXT"), "The only knowledgeId that the token may be used with.")
    private static let links = CommandOption(
        "links", .required("A:read,B:write"), "Linked owners, each with read or write.")
    private static let scope = CommandOption(
        "scope", .required("WORDS"), "What the token allows, for example read; by default everything.")
    private static let lifetime = CommandOption(
        "lifetime", .required("SECONDS"), "How long the token is valid. Default: 3600.")
    private static let ownOfCreate = [key, keyID, device, links, scope, lifetime]
    private static let algorithm = CommandOption(
        "algorithm", .required("ES256|RS256|EdDSA"), "The algorithm of its signatures. Default: ES256.")

    private struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// The settings of a server with `auth.method jwt`, as these commands are about nothing else.
    private static func settings(
        _ invocation: Invocation, except own: [CommandOption], needsKeys: Bool
    ) throws -> AuthenticationConfiguration {
        let isGiven = invocation.options.contains { ["auth", "auth.method"].contains($0.name) }
        let method = CommandOptionValue("auth.method", AuthenticationConfiguration.Method.jwt.rawValue)
        return try Settings.load(invocation, except: own, adding: isGiven || !needsKeys ? [] : [method]) {
            $0.read(AuthenticationConfiguration.self)
        }.settings
    }

    // MARK: create

    private static func create(_ invocation: Invocation) throws -> ExitCode {
        let keyFile = invocation.option(key.name)?.value
        let settings = try settings(invocation, except: ownOfCreate, needsKeys: keyFile == nil)
        let lifetime = try invocation.number(lifetime.name, in: 1...315_360_000) ?? 3600
        let signer = try signer(keyFile, id: invocation.option(keyID.name)?.value, settings)
        let now = Int(TokenAuthenticator.wallClock())
        var writer = JSONWriter(capacity: 512)
        try writer.object { writer throws(UsageError) in
            if let issuer = settings.issuers.first { writer.member("iss", issuer) }
            if let audience = settings.audiences.first, audience != "*" { writer.member("aud", audience) }
            writer.member("iat", now)
            writer.member("exp", now + lifetime)
            writer.name(settings.claims.syncID)
            writer.value(invocation.arguments[0])
            if let device = invocation.option(device.name)?.value {
                writer.name(try name(settings.claims.device, of: "device"))
                writer.value(device)
            }
            if let scope = invocation.option(scope.name)?.value {
                writer.name(try name(settings.claims.scope, of: "scope"))
                writer.value(scope)
            }
            if let links = invocation.option(links.name)?.value {
                writer.name(try name(settings.claims.links, of: "links"))
                writer.array { writer in
                    for link in links.split(separator: ",") { writer.value(String(link)) }
                }
            }
        }
        guard let token = signer.token(claims: writer.take()) else {
            throw Failure(description: "the token cannot be signed with this key")
        }
        Output.write(token)
        return .success
    }

    private static func name(_ claim: String, of setting: String) throws(UsageError) -> String {
        guard !claim.isEmpty else {
            throw UsageError("--\(setting) has no claim: auth.claim.\(setting) is empty", of: "token create")
        }
        return claim
    }

    private static func signer(
        _ file: String?, id: String?, _ settings: AuthenticationConfiguration
    ) throws -> SigningKey {
        if let file {
            let pem: [UInt8]
            do {
                pem = try ConfigurationSources.contents(of: file, limit: 64 << 10)
            } catch {
                throw Failure(description: "the key \(file) cannot be read: \(error.message)")
            }
            guard let key = SigningKey(pem: pem, id: id) else {
                throw Failure(
                    description:
                        "\(file) is no private key in PEM without a password: RSA with 2048 bits or more, P-256 "
                        + "or Ed25519")
            }
            return key
        }
        guard case .secret(let secret) = settings.keys, let key = SigningKey(secret: secret) else {
            throw Failure(
                description: "a token needs a private key to be signed with: name one with --key, or a secret with "
                    + "--auth.secret-file")
        }
        return key
    }

    // MARK: check

    private static func check(_ invocation: Invocation) async throws -> ExitCode {
        let settings = try settings(invocation, except: [], needsKeys: true)
        let argument = invocation.arguments.first.flatMap { $0 == "-" ? nil : $0 }
        guard let text = argument ?? readLine() else { throw Failure(description: "there is no token to check") }
        guard let source = try settings.keySource() else {
            throw Failure(description: "auth.method is none: no token is looked at")
        }
        let keys: KeySet
        do {
            keys = try await source.keys().set
        } catch {
            await source.close()
            Output.complain("The keys cannot be read from \(source.name): \(error)")
            return .undecided
        }
        await source.close()
        do throws(TokenRefusal) {
            let now = TokenAuthenticator.wallClock()
            let token = try SignedToken(Array(text.utf8)[...])
            let key = try keys.key(for: token)
            let claims = settings.claims
            let (validity, caller) = try settings.policy.check(token, with: key, at: now) {
                (root) throws(TokenRefusal) in try claims.caller(in: root)
            }
            Output.write(describe(caller, for: validity.end - now))
            return .success
        } catch {
            Output.write("Refused, \(error)")
            for reason in keys.unused { Output.write("  not used: \(reason)") }
            return .failure
        }
    }

    private static func describe(_ caller: Caller, for seconds: Double) -> String {
        var lines = ["Accepted, for \(Int(seconds)) seconds more.", "  syncId: \(caller.syncID)"]
        for grant in caller.grants.dropFirst() { lines.append("  linked: \(grant.owner), \(grant.access.rawValue)") }
        if let device = caller.device { lines.append("  only for the knowledgeId: \(device)") }
        let scope = [(AccessScope.read, "read"), (.write, "write")].filter { caller.scope.contains($0.0) }.map(\.1)
        lines.append("  allows: \(scope.isEmpty ? "neither read nor write" : scope.joined(separator: " and "))")
        return lines.joined(separator: "\n")
    }

    // MARK: key

    private static func key(_ invocation: Invocation) throws -> ExitCode {
        let name = invocation.arguments[0]
        let chosen = invocation.option(algorithm.name)?.value ?? SignatureAlgorithm.es256.rawValue
        guard let algorithm = SignatureAlgorithm(rawValue: chosen), algorithm != .hs256 else {
            throw UsageError("--algorithm is ES256, RS256 or EdDSA, not \(chosen)", of: "token key")
        }
        guard let key = SigningKey(generating: algorithm), let pem = key.pem else {
            throw Failure(description: "OpenSSL cannot make a key")
        }
        try write(pem, to: "\(name).pem", mode: 0o600)
        try write(SigningKey.jwks([key]) + [UInt8(ascii: "\n")], to: "\(name).jwks.json", mode: 0o644)
        Output.write(
            "\(name).pem: the private key, for weir token create --key\n"
                + "\(name).jwks.json: the public key, for auth.jwks-file")
        return .success
    }

    /// Writes a new file.
    private static func write(_ bytes: [UInt8], to path: String, mode: mode_t) throws(Failure) {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)
        guard descriptor >= 0 else { throw Failure(description: "\(path): \(String(cString: strerror(errno)))") }
        defer { close(descriptor) }
        guard Glibc.write(descriptor, bytes, bytes.count) == bytes.count else {
            throw Failure(description: "\(path) cannot be written: \(String(cString: strerror(errno)))")
        }
    }
}
