import FanOutLink
import Gateway
import HTTP
import Observability
import SyncModel
import Synchronization
import TestClocks
import TestSignals
import Testing
import WebTokens

/// Who a token says is calling, and what it allows.
@Suite(.timeLimit(.minutes(5))) struct TokenTests {
    private typealias Setup = TokenGateway

    @Test func aTokenNamesTheCallerAndItsLinks() async throws {
        try await withTokens { test in
            for links in [#"{"x:y":"read","xyz":"write"}"#, #"["x:y:read","xyz:write"]"#] {
                let answer = try await test.exchange(Setup.token(["links": links]))
                #expect(answer.status == 200)
                #expect(
                    answer.text.contains(
                        #""syncId":"abc","epoch":"e1","schemaVersion":"00000000000000000000000000000002","#
                            + #""owners":[{"syncId":"abc","access":"write"},{"syncId":"x:y","access":"read"},"#
                            + #"{"syncId":"xyz","access":"write"}]"#), "\(answer.text)")
            }
        }
    }

    @Test func headersThatNameACallerAreIgnored() async throws {
        try await withTokens { test in
            let headers = ["X-Sync-Id: other", "X-Sync-Links: xyz:write", "Host: attacker.example"]
            let answer = try await test.exchange(Setup.token(), headers: headers)
            #expect(answer.text.contains(#""syncId":"abc""#))
            #expect(answer.text.contains(#""owners":[{"syncId":"abc","access":"write"}]"#))
            let without = try await test.exchange(nil, headers: headers)
            #expect(without.status == 401)
        }
    }

    @Test func uploadsHaveTheGrantsOfTheToken() async throws {
        try await withTokens { test in
            let answer = try await test.exchange(
                Setup.token(["links": #"{"xyz":"write"}"#]), "POST", "/v1/upload",
                #"{"knowledgeId":"k1","batch":1,"changes":[]}"#)
            #expect(answer.status == 202)
            let batch = try #require(try test.gateway.batches.first)
            #expect(batch.device.caller == .abc)
            #expect(batch.grants == [Grant(owner: .abc, access: .write), Grant(owner: .xyz, access: .write)])
        }
    }

    @Test func aStrangerLearnsTheCauseAndNothingElse() async throws {
        let lines = Lines()
        try await withTokens {
            $0.logger = Logger(label: "gateway", output: LogOutput(format: .text, to: lines), level: .debug)
        } test: { test in
            let cases: [(String?, TokenRefusal.Cause)] = [
                (nil, .missing), ("", .missing), ("x.y", .malformed), (Setup.token(["exp": "1699990000"]), .expired),
                (Setup.token(["nbf": "1700003600"]), .notYetValid), (Setup.token(["iss": "\"https://evil\""]), .issuer),
                (Setup.token(["aud": "\"other\""]), .audience), (Setup.token(["sub": ""]), .claims),
                (Setup.token(["sub": "\"secret-subject\"", "exp": "null"]), .claims),
            ]
            for (token, cause) in cases {
                for (method, target) in [("POST", "/v1/pull"), ("GET", "/v1/schema"), ("GET", "/v1/watch")] {
                    let answer = try await test.exchange(token, method, target)
                    #expect(answer.status == 401)
                    let error =
                        cause == .missing ? "" : " error=\"invalid_token\", error_description=\"\(cause.rawValue)\""
                    #expect(answer["www-authenticate"] == "Bearer\(error)")
                    let detail =
                        cause == .missing ? "the request has no bearer token" : "the bearer token is not accepted"
                    #expect(
                        answer.text
                            == #"{"type":"/docs/errors.md#unauthenticated","title":"Who is calling?","status":401,"#
                            + #""code":"unauthenticated","detail":"\#(detail)","cause":"\#(cause.rawValue)"}"#)
                }
            }
            #expect(test.refusals(.expired) == 3)
            #expect(test.refusals(.missing) == 6)
        }
        let text = lines.text
        #expect(text.contains("its iss is"))
        #expect(!text.contains("secret-subject") && !text.contains("eyJ"))
    }

    @Test(
        arguments: [
            ("Authorization: Basic YTpi", .missing), ("Authorization: bearer", .missing),
            ("Authorization: Bearer ", .missing),
            ("Authorization: BearerX", .missing), ("Authorization: Bearer a b", .malformed),
            ("Cookie: token=x", .missing),
            ("Proxy-Authorization: Bearer x.y.z", .missing),
        ] as [(String, TokenRefusal.Cause)])
    func otherHeadersHaveNoToken(header: String, cause: TokenRefusal.Cause) async throws {
        try await withTokens { test in
            let answer = try await test.exchange(nil, headers: [header])
            #expect(answer.text.contains(#""cause":"\#(cause.rawValue)""#))
        }
    }

    @Test func theSchemeIsComparedWithoutCase() async throws {
        try await withTokens { test in
            for scheme in ["bearer", "BEARER", "Bearer  "] {
                let answer = try await test.exchange(nil, headers: ["Authorization: \(scheme) \(Setup.token())"])
                #expect(answer.status == 200)
            }
        }
    }

    @Test func refusesTwoTokensAndTokensElsewhere() async throws {
        try await withTokens { test in
            let token = Setup.token()
            let two = try await test.exchange(token, headers: ["Authorization: Bearer \(token)"])
            #expect(two.text.contains("token_malformed"))
            let basic = try await test.exchange(token, headers: ["Authorization: Basic YTpi"])
            #expect(basic.text.contains("token_malformed"))
            let query = try await test.exchange(nil, "GET", "/v1/schema?access_token=\(token)&token=\(token)")
            #expect(query.text.contains("token_missing"))
            let body = try await test.exchange(
                nil, "POST", "/v1/pull", #"{"knowledgeId":"k1","access_token":"\#(token)"}"#)
            #expect(body.text.contains("token_missing"))
        }
    }

    @Test func refusesTokensThatAreTooLarge() async throws {
        try await withTokens {
            $0.gateway = { $0.configuration.server.maxHeaderBytes = 65_536 }
        } test: { test in
            let large = try await test.exchange(Setup.token(["p": "\"\(String(repeating: "x", count: 13_000))\""]))
            #expect(large.text.contains("token_too_large"))
            let fitting = try await test.exchange(Setup.token(["p": "\"\(String(repeating: "x", count: 11_000))\""]))
            #expect(fitting.status == 200)
        }
    }

    @Test func refusesAnUploadBeforeItsBodyIsRead() async throws {
        try await withTokens { test in
            let client = try HTTPClient(port: test.gateway.port)
            try await client.send(
                Array(
                    "POST /v1/upload HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer x.y\r\nContent-Length: 1000000\r\n\r\n"
                        .utf8))
            #expect(try await client.answer().status == 401)
        }
    }

    @Test func documentsNeedNoToken() async throws {
        try await withTokens { test in
            for target in ["/openapi.json", "/docs/errors.md"] {
                let answer = try await test.exchange(nil, "GET", target)
                #expect(answer.status == 200)
            }
            let schema = try await test.exchange(nil, "GET", "/v1/schema")
            #expect(schema.status == 401)
        }
    }

    @Test(arguments: [
        #"{"xyz":"own"}"#, #"{"xyz":1}"#, #"{"":"read"}"#, #"["xyz"]"#, #"["xyz:"]"#, #"[":read"]"#, "[1]", "1", "true",
        #""xyz:read""#, #"{"xyz":"read","xyz":"write"}"#, #"["x\u0000:read"]"#, "null",
    ])
    func refusesLinksOfAnotherForm(links: String) async throws {
        try await withTokens { test in
            let answer = try await test.exchange(Setup.token(["links": links]))
            #expect(answer.text.contains("token_claims"), "\(answer.text)")
        }
    }

    @Test(arguments: [
        "\"\"", "1", "null", #"["abc"]"#, #""a\u0000b""#, "\"\(String(repeating: "x", count: 256))\"",
    ])
    func refusesSubjectsThatAreNoSyncId(subject: String) async throws {
        try await withTokens { test in
            for claim in ["sub", "did"] {
                let answer = try await test.exchange(Setup.token([claim: subject]))
                #expect(answer.text.contains("token_claims"), "\(answer.text)")
            }
        }
    }

    @Test func aTokenOfADeviceIsForThatDeviceAlone() async throws {
        try await withTokens { test in
            let token = Setup.token(["did": "\"k1\""])
            let requests = [
                ("POST", "/v1/pull"), ("POST", "/v1/sync"), ("POST", "/v1/upload"),
                ("GET", "/v1/batches/1?knowledgeId="),
            ]
            for (method, target) in requests {
                let isGet = method == "GET"
                let own = try await test.exchange(
                    token, method, isGet ? target + "k1" : target, #"{"knowledgeId":"k1","changes":[]}"#)
                #expect(own.status != 403, "\(target): \(own.text)")
                let other = try await test.exchange(
                    token, method, isGet ? target + "k2" : target, #"{"knowledgeId":"k2","changes":[]}"#)
                #expect(other.status == 403)
                #expect(other.text.contains(#""code":"wrong_device""#))
            }
            #expect(try await test.exchange(token, "GET", "/v1/schema").status == 200)
        }
    }

    @Test(
        arguments: [
            (nil, true, true), (#""read write""#, true, true), (#"["write","read"]"#, true, true),
            (#""read""#, true, false),
            (#"["read"]"#, true, false), (#""openid write email""#, false, true), (#""""#, false, false),
            ("[]", false, false),
            (#""READ readwrite""#, false, false),
        ] as [(String?, Bool, Bool)])
    func theScopeAllowsRoutes(scope: String?, reads: Bool, writes: Bool) async throws {
        try await withTokens { test in
            let token = scope.map { Setup.token(["scope": $0]) } ?? Setup.token()
            let cases: [(String, String, String?, Bool)] = [
                ("POST", "/v1/pull", #"{"knowledgeId":"k1"}"#, reads),
                ("POST", "/v1/upload", #"{"knowledgeId":"k1","changes":[]}"#, writes),
                ("POST", "/v1/sync", #"{"knowledgeId":"k1"}"#, reads && writes),
                ("GET", "/v1/batches/1?knowledgeId=k1", nil, reads || writes), ("HEAD", "/v1/watch", nil, reads),
                ("GET", "/v1/schema", nil, true),
            ]
            for (method, target, body, isAllowed) in cases {
                let answer = try await test.exchange(token, method, target, body)
                #expect((answer.status != 403) == isAllowed, "\(method) \(target): \(answer.status)")
                if !isAllowed { #expect(answer["www-authenticate"] == "Bearer error=\"insufficient_scope\"") }
            }
        }
    }

    /// Who finds a device must not be able to shut out the others.
    @Test func aTokenForOneDeviceManagesNoOther() async throws {
        let known = KnownDevices(RecordedSightings())
        try await withTokens {
            $0.gateway = { $0.devices = known.gateway }
        } test: { test in
            let bound = Setup.token(["did": #""k1""#])
            let manager = Setup.token(["did": #""k1""#, "scope": #""read write devices""#])
            let words = Setup.token(["scope": #""read write""#])
            for (token, id, status) in [
                (bound, "k2", 403), (manager, "k2", 204), (words, "k3", 204), (Setup.token(), "k4", 204),
                (Setup.token(["scope": #""read devices""#]), "k5", 403), (bound, "k1", 204),
                // Revoked now, whatever its token allows.
                (manager, "k6", 403),
            ] {
                let answer = try await test.exchange(token, "DELETE", "/v1/devices/\(id)", nil)
                #expect(answer.status == status, "\(id): \(answer.text)")
            }
            #expect(try await test.exchange(bound, "GET", "/v1/schema").status == 403)
        }
    }

    /// A row that a conflict shows is read, too.
    @Test func whoMayNotReadSeesResultsWithoutRows() async throws {
        try await withTokens { test in
            let part = PartOutcome.results(
                [(0, .conflict, nil)], summary: BatchSummary(changeCount: 1), rows: [0: #"{"id":"shown"}"#])
            test.gateway.link.set(part, ofPart: 0)
            test.gateway.link.keep(part, of: 7, with: .abc)
            for (scope, isShown) in [(#""write""#, false), (#""read write""#, true)] {
                let token = Setup.token(["scope": scope])
                let upload = try await test.exchange(
                    token, "POST", "/v1/upload", headers: ["Prefer: wait=1"],
                    #"{"knowledgeId":"k1","batch":7,"changes":[1]}"#)
                let lookup = try await test.exchange(token, "GET", "/v1/batches/7?knowledgeId=k1")
                for answer in [upload, lookup] {
                    #expect(answer.status == 200)
                    #expect(answer.text.contains("shown") == isShown, "\(answer.text)")
                }
            }
        }
    }

    @Test(arguments: ["1", "null", "{}", "[1]"])
    func refusesScopesOfAnotherForm(scope: String) async throws {
        try await withTokens { test in
            let answer = try await test.exchange(Setup.token(["scope": scope]))
            #expect(answer.text.contains("token_claims"))
        }
    }

    @Test func claimsHaveTheNamesOfTheSettings() async throws {
        try await withTokens {
            $0.claims.syncID = "https://example/tenant"
            $0.claims.device = ""
            $0.claims.links = "shares"
            $0.claims.scope = "permissions"
            $0.claims.readScope = "sync:read"
        } test: { test in
            let token = Setup.token([
                "https://example/tenant": "\"xyz\"", "did": "1", "links": "1", "scope": "1",
                "shares": #"["abc:read"]"#, "permissions": #"["sync:read"]"#,
            ])
            let answer = try await test.exchange(token)
            #expect(
                answer.text.contains(
                    #""owners":[{"syncId":"xyz","access":"write"},{"syncId":"abc","access":"read"}]"#))
            let upload = try await test.exchange(token, "POST", "/v1/upload", #"{"knowledgeId":"k1","changes":[]}"#)
            #expect(upload.status == 403)
        }
    }

    private final class Lines: LogSink {
        private let lines = Mutex<[String]>([])

        var text: String { lines.withLock { $0.joined(separator: "\n") } }

        func write(_ line: [UInt8]) { lines.withLock { $0.append(String(decoding: line, as: UTF8.self)) } }
    }
}
