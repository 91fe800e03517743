import Configuration
import HTTPDownload
import TokenKeys
import WebTokens

/// How callers prove who they are; the executable scopes the settings with `auth.`.
package struct AuthenticationConfiguration: ConfigurationComponent {
    package enum Method: String, Sendable, CaseIterable {
        /// Callers state who they are.
        case none
        /// Callers have signed bearer tokens.
        case jwt
    }

    /// Where the keys of tokens come from.
    package enum Keys: Sendable {
        case url(DownloadURL, KeyFormat)
        case file(String, KeyFormat)
        case secret([UInt8])
    }

    package var method = Method.none
    private var jwksURL: String?
    private var jwksFile: String?
    private var certificatesURL: String?
    private var certificatesFile: String?
    private var firebaseProject: String?
    private var secret: Secret?
    package private(set) var issuers: [String] = []
    package private(set) var audiences: [String] = []
    private var leeway: Duration = .seconds(30)
    package private(set) var claims = ClaimNames()
    package private(set) var keySettings = IssuerKeysSettings()
    package private(set) var authorities: String?
    package private(set) var downloads = DownloadLimits()
    private var cacheTokens = 100_000
    private var cacheBytes = 64 << 20

    /// `nil` with ``Method/none``.
    package private(set) var keys: Keys?
    package private(set) var policy = TokenPolicy()
    package var cachedTokens: (count: Int, bytes: Int) { (cacheTokens, cacheBytes) }

    package init() {}

    package static var settings: [Setting<Self>] {
        Setting(
            "method", \.method, .choice(Method.self),
            "How callers are authenticated: jwt, by a signed bearer token; none trusts the header X-Sync-Id, on loopback only."
        )
        Setting(
            optional: "jwks-url", \.jwksURL, .string(),
            "URL of the issuer's keys as a JWK set; https, or http on loopback.")
        Setting(optional: "jwks-file", \.jwksFile, .path, "File with the issuer's keys as a JWK set, read every 5s.")
        Setting(
            optional: "certificates-url", \.certificatesURL, .string(),
            "URL of the issuer's X.509 certificates, a JSON object of PEM by key name.")
        Setting(
            optional: "certificates-file", \.certificatesFile, .path,
            "File with the issuer's X.509 certificates, a JSON object of PEM by key name, read every 5s.")
        Setting(
            optional: "firebase-project", \.firebaseProject, .string(lengths: 1...100),
            "Firebase project whose ID tokens are accepted; issuer, audience and certificates-url follow from it.")
        Setting(
            optional: "secret", \.secret, .secret(lengths: VerificationKey.leastSecretBytes...4096),
            "Secret of HS256 tokens, for development: everybody who can check a token with it can make one.")
        Setting(
            "issuer", \.issuers, .list(counts: 0...20),
            "Accepted issuers (iss); required, but with a secret, where none means any.")
        Setting(
            "audience", \.audiences, .list(counts: 0...20),
            "Accepted audiences (aud), or * for any and none; required, but with a secret, where none means any.")
        Setting(
            "leeway", \.leeway, .duration(in: .zero...(.seconds(300))),
            "How much the issuer's clock may differ: tokens are accepted so much before nbf and iat and after exp.")
        Setting(
            "claim.sync-id", \.claims.syncID, .string(lengths: 1...256),
            "Claim that names the caller's syncId, a string."
        )
        Setting(
            "claim.device", \.claims.device, .string(lengths: 0...256),
            "Claim that names the only knowledgeId that a token may be used with; a token without it may be used with any."
        )
        Setting(
            "claim.links", \.claims.links, .string(lengths: 0...256),
            "Claim that names linked owners: an object {\"abc\": \"write\"}, or an array of strings \"abc:write\".")
        Setting(
            "claim.scope", \.claims.scope, .string(lengths: 0...256),
            "Claim of the words that say what a token allows, a string or an array; a token without it allows everything."
        )
        Setting(
            "scope.read", \.claims.readScope, .string(lengths: 1...256),
            "Word of the scope that allows pulls and watches.")
        Setting("scope.write", \.claims.writeScope, .string(lengths: 1...256), "Word of the scope that allows uploads.")
        Setting(
            "scope.devices", \.claims.devicesScope, .string(lengths: 1...256),
            "Word of the scope with which a token for one device may name and revoke others.")
        Setting(
            "keys.max-age", \.keySettings.maximumAge, .duration(in: .seconds(1)...(.seconds(86_400))),
            "How long keys of a URL are used before they are read again, even if Cache-Control allows longer: "
                + "so long a withdrawn key may be accepted.")
        Setting(
            "keys.stale-limit", \.keySettings.staleLimit, .duration(in: .seconds(1)...(.seconds(31_536_000))),
            "How long the last keys are used while their source fails; then requests are answered with 503.")
        Setting(
            "keys.timeout", \.downloads.time, .duration(in: .milliseconds(100)...(.seconds(60))),
            "How long a download of keys may take.")
        Setting(
            "keys.max-waiting", \.keySettings.maximumWaiting, .integer(in: 1...100_000),
            "Requests that may wait at a time for keys that their tokens name; beyond it they are answered with 503.")
        Setting(
            optional: "keys.ca-file", \.authorities, .path,
            "PEM file with the certificates that sign that of the keys' server; without it, the system's.")
        Setting(
            "cache-tokens", \.cacheTokens, .integer(in: 0...10_000_000),
            "Checked tokens that are remembered, so that their signature is not checked again.")
        Setting(
            "cache-bytes", \.cacheBytes, .byteSize(in: 0...(1 << 34)), "Memory for the tokens that are remembered.")
    }

    package mutating func validate(_ context: ValidationContext<Self>) throws(ConfigurationProblem) {
        let sources: [(property: PartialKeyPath<Self>, name: String, isSet: Bool)] = [
            (\.jwksURL, "jwks-url", jwksURL != nil), (\.jwksFile, "jwks-file", jwksFile != nil),
            (\.certificatesURL, "certificates-url", certificatesURL != nil && firebaseProject == nil),
            (\.certificatesFile, "certificates-file", certificatesFile != nil && firebaseProject == nil),
            (\.firebaseProject, "firebase-project", firebaseProject != nil), (\.secret, "secret", secret != nil),
        ]
        let given = sources.filter(\.isSet)
        guard method == .jwt else {
            if let first = given.first {
                throw context.problem(
                    with: first.property, "has no effect while the method is none: set auth.method to jwt, or remove it"
                )
            }
            return
        }
        guard let source = given.first else {
            let names = sources.map(\.name).joined(separator: ", ")
            throw context.problem(with: \.method, "jwt needs to know where the keys of tokens are: set one of \(names)")
        }
        if given.count > 1 {
            throw context.problem(
                with: given[1].property, "cannot be set beside \(source.name): keys have one source, remove one of them"
            )
        }
        if certificatesURL != nil, certificatesFile != nil {
            throw context.problem(with: \.certificatesFile, "cannot be set beside certificates-url: remove one of them")
        }
        keys = try keys(context)
        try setPolicy(context)
    }

    private mutating func setPolicy(_ context: ValidationContext<Self>) throws(ConfigurationProblem) {
        if let firebaseProject {
            guard issuers.isEmpty, audiences.isEmpty else {
                throw context.problem(
                    with: issuers.isEmpty ? \Self.audiences : \.issuers, "follows from firebase-project: remove it")
            }
            issuers = ["https://securetoken.google.com/\(firebaseProject)"]
            audiences = [firebaseProject]
        }
        if secret == nil {
            if issuers.isEmpty {
                throw context.problem(
                    with: \.issuers, "is needed with keys of an issuer: set it to what its tokens have as iss")
            }
            if audiences.isEmpty {
                throw context.problem(
                    with: \.audiences,
                    "is needed with keys of an issuer: set it to what its tokens for this service have as aud, or to * "
                        + "if the issuer makes tokens for this service only")
            }
        }
        let acceptsAny = audiences.contains { $0.utf8.elementsEqual("*".utf8) }
        policy = TokenPolicy(
            issuers: issuers, audiences: acceptsAny ? [] : audiences, leeway: leeway / .seconds(1))
    }

    private mutating func keys(_ context: ValidationContext<Self>) throws(ConfigurationProblem) -> Keys {
        if let secret { return .secret(Array(secret.reveal().utf8)) }
        if let file = jwksFile ?? certificatesFile {
            // A file is read as often as its source says, whatever a URL's keys may do.
            keySettings.minimumAge = FileKeySource.period
            keySettings.cooldown = FileKeySource.period
            return .file(file, jwksFile == nil ? .certificates : .jwks)
        }
        if let jwksURL { return .url(try url(jwksURL, \.jwksURL, context), .jwks) }
        let certificates =
            certificatesURL
            ?? "https://www.googleapis.com/robot/v1/metadata/x509/securetoken@system.gserviceaccount.com"
        return .url(try url(certificates, \.certificatesURL, context), .certificates)
    }

    private func url(
        _ text: String, _ property: PartialKeyPath<Self>, _ context: ValidationContext<Self>
    ) throws(ConfigurationProblem) -> DownloadURL {
        guard let url = DownloadURL(text) else {
            throw context.problem(
                with: property, "must begin with https://, or with http:// on loopback, and hold no password")
        }
        return url
    }
}

extension AuthenticationConfiguration {
    /// The source of the keys, whose threads it starts; `nil` with ``Method/none``.
    package func keySource() throws -> (any KeySource)? {
        switch keys {
        case .url(let url, let format):
            try WebKeySource(url, format, limits: downloads, authorities: authorities)
        case .file(let path, let format): try FileKeySource(path, format)
        case .secret(let secret): FixedKeys(KeySet(VerificationKey(secret: secret).map { [$0] } ?? []))
        case nil: nil
        }
    }
}
