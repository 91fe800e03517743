import Testing

/// `weir token`, and a server that accepts its tokens.
@Suite(.timeLimit(.minutes(5))) struct TokenCommandTests {
    private static let secret = "0123456789abcdef0123456789abcdef"
    private static let issuer = ["--auth.issuer", "https://issuer", "--auth.audience", "weir"]

    private let folder: TestFolder

    init() throws { folder = try TestFolder() }

    private func token(_ arguments: String...) async throws -> CommandRun {
        try await CommandRun.run(["token"] + arguments, in: folder)
    }

    @Test(arguments: ["ES256", "RS256", "EdDSA"])
    func aKeyPairSignsTokensThatItsPublicKeyChecks(algorithm: String) async throws {
        let made = try await token("key", "issuer", "--algorithm", algorithm)
        #expect(made.code == 0)
        let again = try await token("key", "issuer")
        #expect(again.code != 0)
        #expect(again.errors.contains("issuer.pem: File exists"))
        let created = try await CommandRun.run(
            ["token", "create", "ada", "--key", "issuer.pem", "--links", "bob:read,eve:write", "--device", "phone"]
                + Self.issuer, in: folder)
        #expect(created.code == 0)
        let signed = created.output.split(separator: "\n").map(String.init)
        #expect(signed.count == 1)
        let checked = try await CommandRun.run(
            ["token", "check", signed[0], "--auth.jwks-file", "issuer.jwks.json"] + Self.issuer, in: folder)
        #expect(checked.code == 0)
        #expect(checked.output.hasPrefix("Accepted, for 36"))
        for line in [
            "syncId: ada", "linked: bob, read", "linked: eve, write", "only for the knowledgeId: phone",
            "allows: read and write",
        ] { #expect(checked.output.contains("  \(line)\n"), "\(line)") }
    }

    @Test func aRefusalIsExplained() async throws {
        try folder.write(Self.secret + "\n", to: "secret")
        try folder.write(String(Self.secret.reversed()) + "\n", to: "other")
        let created = try await CommandRun.run(
            ["token", "create", "ada", "--auth.secret-file", "secret", "--scope", "read"] + Self.issuer, in: folder)
        let signed = created.output.split(separator: "\n").map(String.init)[0]
        for (arguments, explanation) in [
            (["--auth.secret-file", "secret", "--auth.issuer", "x"], "token_issuer: its iss is \"https://issuer\""),
            (["--auth.secret-file", "secret", "--auth.audience", "x"], "Refused, token_audience: its aud is \"weir\""),
            (["--auth.secret-file", "other"], "Refused, token_signature"),
            (["--auth.secret-file", "secret", "--auth.claim.sync-id", "tenant"], "token_claims: it has no tenant"),
        ] {
            let checked = try await CommandRun.run(["token", "check", signed] + arguments, in: folder)
            #expect(checked.code == 1)
            #expect(checked.output.contains(explanation), "\(checked.output)")
        }
        let fitting = try await token("check", signed, "--auth.secret-file", "secret")
        #expect(fitting.output.contains("allows: read\n"))
        let undecided = try await CommandRun.run(
            ["token", "check", signed, "--auth.jwks-file", "absent"] + Self.issuer, in: folder)
        #expect(undecided.code == 2)
        #expect(undecided.errors.contains("The keys cannot be read from absent: No such file"))
    }

    @Test func aTokenNeedsSomethingToSignWith() async throws {
        let run = try await CommandRun.run(
            ["token", "create", "ada", "--auth.jwks-file", "issuer.jwks.json"] + Self.issuer, in: folder)
        #expect(run.code != 0)
        #expect(run.errors.contains("--key"))
        try folder.write("no key", to: "bad.pem")
        let bad = try await token("create", "ada", "--key", "bad.pem")
        #expect(bad.errors.contains("bad.pem is no private key"))
    }

    @Test func aServerAcceptsTokensAndBelievesNoOtherHeader() async throws {
        try folder.write(TestServer.schema, to: "schema.yaml")
        try folder.write(Self.secret + "\n", to: "secret")
        let signed = try await token("create", "ada", "--auth.secret-file", "secret").output
            .split(separator: "\n").map(String.init)[0]
        let weir = try await TestServer.start(
            in: folder, settings: ["auth.method": "jwt", "auth.secret-file": "secret"])
        func status(_ headers: [String]) async throws -> String {
            try await CommandRun.tool(
                ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "--noproxy", "*"]
                    + headers.flatMap { ["-H", $0] } + ["http://127.0.0.1:\(weir.port)/v1/schema"], in: folder
            ).output
        }
        #expect(try await status(["Authorization: Bearer \(signed)"]) == "200")
        #expect(try await status(["X-Sync-Id: ada"]) == "401")
        #expect(try await status([]) == "401")
        #expect(await weir.stop() == 0)
    }

    @Test func aFileOfKeysThatCannotBeReadIsReportedAtTheStart() async throws {
        try folder.write(TestServer.schema, to: "schema.yaml")
        let run = try await CommandRun.run(
            [
                "run", "--schema", "schema.yaml", "--data", "data", "--address", "127.0.0.1:0", "--operations.address",
                "off", "--auth", "jwt", "--auth.jwks-file", "absent",
            ] + Self.issuer, in: folder)
        #expect(run.code == 1)
        #expect(run.errors.contains("the keys of tokens cannot be read from absent: No such file or directory"))
    }
}
