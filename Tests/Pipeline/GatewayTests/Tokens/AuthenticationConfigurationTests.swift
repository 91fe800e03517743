import Configuration
import Gateway
import HTTPDownload
import Testing
import TokenKeys
import WebTokens

/// Which settings of authentication go together.
@Suite struct AuthenticationConfigurationTests {
    private func load(_ settings: [String: String]) throws -> AuthenticationConfiguration {
        var schema = ConfigurationSchema(program: "weir")
        schema.add(AuthenticationConfiguration.self, as: "auth", "Authentication")
        let environment = Dictionary(
            uniqueKeysWithValues: settings.map {
                ("WEIR_AUTH_" + $0.key.uppercased().replacing("-", with: "_").replacing(".", with: "_"), $0.value)
            })
        return try schema.load(from: ConfigurationSources(environment: environment)) { $0.read() }.settings
    }

    @Test func nobodyIsAuthenticatedByDefault() throws {
        let settings = try load([:])
        #expect(settings.method == .none)
        #expect(settings.keys == nil)
        #expect(try settings.keySource() == nil)
    }

    @Test(arguments: [
        (["method": "jwt"], "set one of jwks-url"), (["jwks-file": "a"], "set auth.method to jwt"),
        (["method": "none", "secret": "0123456789abcdef0123456789abcdef"], "set auth.method to jwt"),
        (["method": "jwt", "secret": "short"], "a secret of 32 to 4096 bytes"),
        (["method": "jwt", "jwks-file": "a", "jwks-url": "https://b"], "remove one of them"),
        (["method": "jwt", "jwks-file": "a", "certificates-file": "b"], "remove one of them"),
        (["method": "jwt", "firebase-project": "a", "jwks-url": "https://b"], "remove one of them"),
        (
            ["method": "jwt", "firebase-project": "a", "certificates-url": "https://b", "certificates-file": "c"],
            "remove one of them"
        ),
        (["method": "jwt", "firebase-project": "a", "issuer": "b"], "follows from firebase-project"),
        (["method": "jwt", "firebase-project": "a", "audience": "b"], "follows from firebase-project"),
        (["method": "jwt", "jwks-file": "a", "audience": "b"], "what its tokens have as iss"),
        (["method": "jwt", "jwks-file": "a", "issuer": "b"], "what its tokens for this service have as aud"),
        (["method": "jwt", "jwks-url": "http://example.com/", "issuer": "a", "audience": "b"], "begin with https"),
        (["method": "jwt", "jwks-url": "file:///keys", "issuer": "a", "audience": "b"], "must begin with https"),
        (["method": "jwt", "firebase-project": "a", "certificates-url": "ftp://b"], "must begin with https"),
        (["method": "basic"], "one of none, jwt"), (["leeway": "6m"], "from 0 to 5m"),
    ])
    func contradictionsAreRefused(settings: [String: String], explanation: String) {
        #expect {
            try load(settings)
        } throws: { error in
            #expect("\(error)".contains(explanation), "\(error)")
            return true
        }
    }

    @Test func firebaseNeedsAProjectAlone() throws {
        let settings = try load(["method": "jwt", "firebase-project": "my-app"])
        #expect(settings.policy.issuers == ["https://securetoken.google.com/my-app"])
        #expect(settings.policy.audiences == ["my-app"])
        guard case .url(let url, .certificates) = settings.keys else {
            Issue.record("\(String(describing: settings.keys))")
            return
        }
        #expect(url.text.hasPrefix("https://www.googleapis.com/robot/v1/metadata/x509/securetoken@"))
        let other = try load([
            "method": "jwt", "firebase-project": "my-app", "certificates-url": "http://127.0.0.1:9/keys",
        ])
        guard case .url(let url, .certificates) = other.keys else {
            Issue.record("\(String(describing: other.keys))")
            return
        }
        #expect(url.text == "http://127.0.0.1:9/keys")
    }

    @Test func issuerAndAudienceMayBeSeveral() throws {
        let settings = try load([
            "method": "jwt", "jwks-url": "https://a/", "issuer": "a, b", "audience": "c,d", "leeway": "1500ms",
            "claim.sync-id": "tenant", "claim.scope": "", "scope.read": "r", "scope.devices": "d", "keys.max-age": "1h",
        ])
        #expect(settings.policy.issuers == ["a", "b"])
        #expect(settings.policy.audiences == ["c", "d"])
        #expect(settings.policy.leeway == 1.5)
        #expect(settings.claims.syncID == "tenant")
        #expect(settings.claims.scope.isEmpty)
        #expect(settings.claims.readScope == "r")
        #expect(settings.claims.devicesScope == "d")
        #expect(settings.keySettings.maximumAge == .seconds(3600))
        let any = try load(["method": "jwt", "jwks-url": "https://a/", "issuer": "a", "audience": "*"])
        #expect(any.policy.audiences.isEmpty)
    }

    @Test func aFileIsReadAsOftenAsItSays() throws {
        let settings = try load(["method": "jwt", "jwks-file": "keys.json", "issuer": "a", "audience": "b"])
        #expect(settings.keySettings.minimumAge == .seconds(5))
        #expect(settings.keySettings.cooldown == .seconds(5))
    }
}
