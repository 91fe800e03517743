import Gateway
import HTTP
import SyncModel
import Testing

/// What a browser gets to see, for pages of configured origins and of others (CORS).
@Suite(.timeLimit(.minutes(5))) struct CrossOriginTests {
    private static let app = "https://app.example"
    private static let exposed =
        "ETag, Retry-After, RateLimit, RateLimit-Policy, WWW-Authenticate, Downloaded-Till, Content-Digest, Repr-Digest, "
        + "Content-Range"

    private func preflight(
        _ gateway: TestGateway, _ path: String, from origin: String, method: String = "POST"
    ) async throws -> HTTPClient.Answer {
        try await gateway.exchange(
            "OPTIONS", path, as: nil,
            headers: [
                "Origin: \(origin)", "Access-Control-Request-Method: \(method)",
                "Access-Control-Request-Headers: authorization,content-type",
            ])
    }

    private func headers(_ answer: HTTPClient.Answer) -> [String] {
        answer.headers.filter { $0.name.hasPrefix("access-control-") || $0.name == "vary" }.map(\.name).sorted()
    }

    @Test func allowsPreflightsOfConfiguredOriginsWithoutACaller() async throws {
        try await withGateway {
            $0.configuration.corsOrigins = ["http://localhost:5173", Self.app]
        } test: { gateway in
            let answer = try await preflight(gateway, "/v1/sync", from: Self.app)
            #expect(answer.status == 204)
            #expect(answer["access-control-allow-origin"] == Self.app)
            #expect(answer["access-control-allow-methods"] == "POST, OPTIONS")
            #expect(answer["access-control-max-age"] == "7200")
            #expect(answer["vary"] == "Origin")
            let allowed = try #require(answer["access-control-allow-headers"]).lowercased()
            for name in [
                "authorization", "content-type", "content-encoding", "prefer", "last-event-id", "if-none-match",
                "x-device-id", "x-sync-id", "x-sync-links",
            ] {
                #expect(allowed.contains(name), "\(name)")
            }
            let watch = try await preflight(gateway, "/v1/watch", from: "http://localhost:5173", method: "GET")
            #expect(watch["access-control-allow-origin"] == "http://localhost:5173")
            #expect(watch["access-control-allow-methods"] == "GET, HEAD, OPTIONS")
            let unknown = try await preflight(gateway, "/v1/none", from: Self.app)
            #expect(unknown.status == 404)
            #expect(unknown["access-control-allow-origin"] == Self.app)
        }
    }

    @Test func everyAnswerToAConfiguredOriginNamesIt() async throws {
        try await withGateway {
            $0.configuration.corsOrigins = [Self.app]
            $0.configuration.server.maxURLBytes = 200
            $0.limits = SyncLimits(maxBatchBytes: 1000)
            $0.configuration.callerRates = Rates(requests: 2)
        } test: { gateway in
            func expectNamed(
                _ status: Int, _ method: String, _ target: String, as caller: String? = "abc", _ headers: [String] = [],
                _ body: String? = nil
            ) async throws {
                let answer = try await gateway.exchange(
                    method, target, as: caller, headers: headers + ["Origin: \(Self.app)"], body)
                #expect(answer.status == status, "\(target)")
                #expect(answer["access-control-allow-origin"] == Self.app, "\(target)")
                #expect(answer["access-control-expose-headers"] == Self.exposed, "\(target)")
                #expect(answer.headers.contains { $0.name == "vary" && $0.value == "Origin" }, "\(target)")
            }
            let upload = #"{"knowledgeId":"k1","changes":[1]}"#
            try await expectNamed(202, "POST", "/v1/upload", [], upload)
            try await expectNamed(200, "POST", "/v1/pull", [], #"{"knowledgeId":"k1"}"#)
            try await expectNamed(200, "HEAD", "/v1/watch")
            try await expectNamed(200, "GET", "/openapi.json")
            try await expectNamed(401, "POST", "/v1/sync", as: nil, [], upload)
            try await expectNamed(400, "POST", "/v1/upload", [], "{")
            try await expectNamed(404, "GET", "/none")
            try await expectNamed(405, "GET", "/v1/sync")
            try await expectNamed(415, "POST", "/v1/pull", ["Content-Type: text/plain"], "{}")
            // Of the HTTP server: before a handler sees the request, and with the body half read.
            try await expectNamed(414, "GET", "/" + String(repeating: "x", count: 300))
            try await expectNamed(413, "POST", "/v1/upload", [], String(repeating: " ", count: 2000))
            try await expectNamed(400, "GET", "/%zz")
            for _ in 1...20 { _ = try await gateway.exchange("GET", "/v1/schema") }
            try await expectNamed(429, "GET", "/v1/schema")
            try await expectNamed(429, "POST", "/v1/upload", [], upload)
        }
    }

    @Test func requestsWithoutAnOriginGetVaryAlone() async throws {
        try await withGateway {
            $0.configuration.corsOrigins = [Self.app]
        } test: { gateway in
            #expect(headers(try await gateway.exchange("GET", "/v1/schema")) == ["vary"])
            // One connection: the origin of one request is not that of the next.
            let client = try HTTPClient(port: gateway.port)
            try await client.send("GET", "/v1/schema", headers: TestGateway.headers() + ["Origin: \(Self.app)"])
            #expect(try await client.answer()["access-control-allow-origin"] == Self.app)
            try await client.send("GET", "/v1/schema", headers: TestGateway.headers())
            #expect(headers(try await client.answer()) == ["vary"])
        }
    }

    @Test(arguments: [
        "https://app.example.evil.example", "http://app.example", "https://app.example:8443", "null",
        "https://APP.example",
        "*", "",
    ])
    func pagesOfOtherOriginsGetNothing(origin: String) async throws {
        try await withGateway {
            $0.configuration.corsOrigins = [Self.app]
        } test: { gateway in
            let answer = try await preflight(gateway, "/v1/sync", from: origin)
            #expect(answer.status == 204)
            #expect(headers(answer) == ["vary"])
            #expect(
                headers(try await gateway.exchange("GET", "/v1/schema", headers: ["Origin: \(origin)"])) == ["vary"])
        }
    }

    @Test func everyOriginMayBeAllowedWithAuthentication() async throws {
        try await withGateway {
            $0.configuration.corsOrigins = ["*"]
            $0.authentication.believesHeaders = false
        } test: { gateway in
            let answer = try await preflight(gateway, "/v1/sync", from: "https://any.example")
            #expect(answer["access-control-allow-origin"] == "*")
            #expect(answer["vary"] == nil)
            // The headers that name a caller without proof are not offered.
            let allowed = try #require(answer["access-control-allow-headers"])
            #expect(!allowed.contains("X-Sync-Id"))
            // It names a device of a caller that is known, to faces.
            #expect(allowed.contains("X-Device-Id"))
            #expect(headers(try await gateway.exchange("GET", "/v1/schema")) == [])
        }
    }

    /// A page can send such requests in any case; what it cannot send without a preflight names the caller.
    @Test func aForeignPageCannotActForACallerWithoutAuthentication() async throws {
        try await withGateway { _ in
        } test: { gateway in
            let answer = try await preflight(gateway, "/v1/upload", from: "https://evil.example")
            #expect(answer.status == 204)
            #expect(headers(answer) == [])
            for type in ["Content-Type: text/plain", "Content-Type: application/x-www-form-urlencoded", "Accept: */*"] {
                let simple = try await gateway.exchange(
                    "POST", "/v1/upload", as: nil, headers: ["Origin: https://evil.example", type],
                    #"{"knowledgeId":"k1","changes":[1]}"#)
                #expect(simple.status == 401)
                #expect(headers(simple) == [])
            }
            let stream = try await gateway.exchange(
                "GET", "/v1/watch", as: nil, headers: ["Origin: https://evil.example"])
            #expect(stream.status == 401)
            #expect(try gateway.batches.isEmpty)
        }
    }

    @Test func aLateRequestIsAnsweredWithTheOrigin() async throws {
        try await withGateway {
            $0.configuration.corsOrigins = [Self.app]
            $0.configuration.server.requestTimeout = .milliseconds(500)
        } test: { gateway in
            let client = try HTTPClient(port: gateway.port)
            try await client.send(
                Array(
                    ("POST /v1/upload HTTP/1.1\r\nHost: localhost\r\nX-Sync-Id: abc\r\nOrigin: \(Self.app)\r\n"
                        + "Content-Length: 100\r\n\r\n{").utf8))
            let answer = try await client.answer()
            #expect(answer.status == 408)
            #expect(answer["access-control-allow-origin"] == Self.app)
        }
    }
}
