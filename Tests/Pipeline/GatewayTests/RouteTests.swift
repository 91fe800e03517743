import CZlib
import FanOutLink
import Gateway
import HTTP
import SyncModel
import Testing

@Suite(.timeLimit(.minutes(5))) struct RouteTests {
    @Test func unknownPathsAreNotFound() async throws {
        try await withGateway { gateway in
            for target in [
                "/", "/v1", "/v1/", "/v1/sync/", "/v2/sync", "/V1/sync", "/v1/batches", "/v1/batches/",
                "/v1/batches/?knowledgeId=k1", "/v1/batches/1/2", "/docs",
            ] {
                let answer = try await gateway.exchange("GET", target)
                #expect(answer.status == 404, "\(target)")
                #expect(answer["content-type"] == "application/problem+json")
                #expect(
                    answer.text == #"{"type":"/docs/errors.md#not_found","title":"Not found","status":404,"#
                        + #""code":"not_found","detail":"no resource has this path"}"#)
            }
        }
    }

    @Test(arguments: [
        ("DELETE", "/v1/sync", "POST, OPTIONS"), ("GET", "/v1/pull", "POST, OPTIONS"),
        ("HEAD", "/v1/upload", "POST, OPTIONS"), ("POST", "/v1/watch", "GET, HEAD, OPTIONS"),
        ("PUT", "/v1/batches/1", "GET, HEAD, OPTIONS"), ("PATCH", "/openapi.json", "GET, HEAD, OPTIONS"),
        ("POST", "/v1/devices/k1", "PATCH, DELETE, OPTIONS"), ("POST", "/v1/devices", "GET, HEAD, OPTIONS"),
    ])
    func refusesOtherMethodsAndListsTheAllowedOnes(method: String, target: String, allow: String) async throws {
        try await withGateway { gateway in
            let answer = try await gateway.exchange(method, target, method == "HEAD" ? nil : "{}")
            #expect(answer.status == 405)
            #expect(answer["allow"] == allow)
            if method != "HEAD" { #expect(answer.text.contains(#""code":"method_not_allowed""#)) }
        }
    }

    @Test(arguments: [
        ("/v1/sync", "POST, OPTIONS"), ("/v1/schema", "GET, HEAD, OPTIONS"),
        ("*", "GET, HEAD, POST, PATCH, DELETE, OPTIONS"), ("/v1/devices/k1", "PATCH, DELETE, OPTIONS"),
    ])
    func respondsToOptionsWithoutAuthentication(target: String, allow: String) async throws {
        try await withGateway { gateway in
            let answer = try await gateway.exchange("OPTIONS", target, as: nil)
            #expect(answer.status == 204)
            #expect(answer["allow"] == allow)
        }
    }

    @Test(arguments: [
        ("localhost", true), ("LOCALHOST:7777", true), ("weir.localhost", true), ("localhost.:7", true),
        ("127.0.0.1:80", true), ("127.8.9.1", true), ("[::1]", true), ("[::1]:7777", true), ("", false),
        ("attacker.example", false), ("attacker.example:7777", false), ("localhost.attacker.example", false),
        ("notlocalhost", false), ("127.0.0.1.attacker.example", false), ("127.0.0.1x", false), ("[::2]", false),
        ("[::1].attacker.example", false), ("localhost:80x", false), ("::1", false), ("weir.LocalHost", true),
        (".localhost", true), ("localhost/", false), ("lo[alhost", false), ("127.0.0", false), ("127.0.0.1.1", false),
        ("127.0.0.256", false), ("127.0..1", false), ("127.0.0.", false), ("27.0.0.1", false), ("127.0.0.0001", false),
        ("127.255.255.255", true), ("127.0.0.+1", false), ("[::1", false), ("127.0.0.1:", true),
    ])
    func answersOnlyLoopbackNamesWhereNobodyProvesAnIdentity(host: String, isAnswered: Bool) async throws {
        try await withGateway { gateway in
            for (method, target, body) in [("GET", "/v1/schema", nil), ("POST", "/v1/pull", #"{"knowledgeId":"k1"}"#)] {
                let answer = try await gateway.exchange(method, target, headers: ["Host: \(host)"], body)
                #expect((answer.status == 403) == !isAnswered, "\(answer.status)")
                #expect(answer.text.contains("the header Host must name loopback") == !isAnswered)
            }
        }
    }

    @Test(arguments: [(4096, false), (4097, true)])
    func readsFewBytesThatNoRouteUses(size: Int, isRefused: Bool) async throws {
        try await withGateway { gateway in
            for (method, target) in [("GET", "/v1/schema"), ("GET", "/openapi.json"), ("OPTIONS", "/v1/sync")] {
                let answer = try await gateway.exchange(
                    method, target, as: nil, String(repeating: " ", count: size))
                #expect((answer.status == 413) == isRefused, "\(method) \(target): \(answer.status)")
            }
        }
    }

    @Test func respondsToHeadLikeGetWithoutTheBody() async throws {
        try await withGateway { gateway in
            for target in ["/v1/schema", "/openapi.json", "/docs/errors.md"] {
                let head = try await gateway.exchange("HEAD", target)
                let get = try await gateway.exchange("GET", target)
                #expect(head.status == 200)
                #expect(head["content-length"] == get["content-length"])
                #expect(head["content-type"] == get["content-type"])
            }
            let watch = try await gateway.exchange("HEAD", "/v1/watch")
            #expect(watch.status == 200)
            #expect(watch["content-type"] == "text/event-stream")
            #expect(gateway.service.counters.watchers == 0)
        }
    }

    @Test func servesTheDocumentsWithoutAuthentication() async throws {
        try await withGateway { gateway in
            let document = try await gateway.exchange("GET", "/openapi.json", as: nil)
            #expect(document.status == 200)
            #expect(document["content-type"] == "application/json")
            #expect(try document.body == Repository.bytes("docs/openapi.json"))
            let errors = try await gateway.exchange("GET", "/docs/errors.md", as: nil)
            #expect(errors.status == 200)
            #expect(errors["content-type"] == "text/markdown; charset=utf-8")
            #expect(try errors.body == Repository.bytes("docs/errors.md"))
        }
    }

    @Test(
        arguments: [
            ([], "once"), (["X-Sync-Id: a", "X-Sync-Id: b"], "once"), (["X-Sync-Id: "], "no syncId"),
            (["X-Sync-Id: %ff"], "no syncId"), (["X-Sync-Id: a%00"], "no syncId"), (["X-Sync-Id: %4"], "no syncId"),
            (["X-Sync-Id: " + String(repeating: "x", count: 256)], "no syncId"),
            (["X-Sync-Id: a", "X-Sync-Links: b"], "list of"), (["X-Sync-Id: a", "X-Sync-Links: b:own"], "list of"),
            (["X-Sync-Id: a", "X-Sync-Links: b:read:write"], "list of"),
            (["X-Sync-Id: a", "X-Sync-Links: :read"], "list of"),
            (["X-Sync-Id: a", "X-Sync-Links: b:READ"], "list of"),
            (
                ["X-Sync-Id: a", "X-Sync-Links: " + (0...1000).map { "\($0):read" }.joined(separator: ",")],
                "at most 1000"
            ),
        ] as [([String], String)])
    func refusesUnauthenticatedRequests(headers: [String], detail: String) async throws {
        try await withGateway {
            $0.configuration.server.maxHeaderBytes = 65_536
        } test: { gateway in
            for (method, target, body) in [
                ("POST", "/v1/sync", "{}"), ("POST", "/v1/upload", ""), ("POST", "/v1/pull", "{"),
                ("GET", "/v1/batches/1?knowledgeId=k1", nil), ("GET", "/v1/watch", nil), ("GET", "/v1/schema", nil),
            ] as [(String, String, String?)] {
                let answer = try await gateway.exchange(method, target, as: nil, headers: headers, body)
                #expect(answer.status == 401, "\(target)")
                #expect(answer["www-authenticate"] == "X-Sync-Id")
                #expect(answer.text.contains(#""code":"unauthenticated""#))
                #expect(answer.text.contains(detail), "\(answer.text)")
            }
        }
    }

    @Test func readsIdsThatArePercentEncoded() async throws {
        try await withGateway { gateway in
            let links = "x%2Cy:read, %3A%25:write,abc:read,x%2cy:write"
            let answer = try await gateway.exchange("POST", "/v1/pull", links: links, #"{"knowledgeId":"k1"}"#)
            #expect(
                answer.text.contains(
                    #""owners":[{"syncId":"abc","access":"write"},{"syncId":"x,y","access":"read"},"#
                        + #"{"syncId":":%","access":"write"}]"#), "\(answer.text)")
        }
    }

    @Test func refusesAForbiddenCaller() async throws {
        try await withGateway { gateway in
            let answer = try await gateway.exchange("POST", "/v1/pull", as: "banned", #"{"knowledgeId":"k1"}"#)
            #expect(answer.status == 403)
            #expect(answer.text.contains(#""code":"forbidden""#))
        }
    }

    @Test(arguments: [
        (nil, 200), ("application/json", 200), ("application/json; charset=utf-8", 200), ("Application/JSON", 200),
        ("text/plain", 415), ("application/jsonx", 415), ("application/json; charset=latin1", 415),
        ("application/json;charset=\"UTF-8\"", 200),
    ])
    func acceptsOnlyJSON(type: String?, status: Int) async throws {
        try await withGateway { gateway in
            let headers = type.map { ["Content-Type: \($0)"] } ?? []
            let answer = try await gateway.exchange("POST", "/v1/pull", headers: headers, #"{"knowledgeId":"k1"}"#)
            #expect(answer.status == status)
            if status == 415 { #expect(answer.text.contains(#""code":"unsupported_media_type""#)) }
        }
    }

    @Test func refusesOtherEncodingsThanGzip() async throws {
        try await withGateway { gateway in
            let answer = try await gateway.exchange("POST", "/v1/pull", headers: ["Content-Encoding: br"], "x")
            #expect(answer.status == 415)
            #expect(answer["accept-encoding"] == "gzip")
            #expect(answer["content-type"] == "application/problem+json")
            #expect(answer.text.contains(#""status":415,"code":"unsupported_media_type""#))
        }
    }

    @Test func compressesResponsesForClientsThatAcceptGzip() async throws {
        try await withGateway { gateway in
            let row = #"{"table":"person","id":"\#(String(repeating: "i", count: 200))"}"#
            gateway.link.set(.rows(Array(repeating: row, count: 20), head: 5), of: .abc)
            let body = #"{"knowledgeId":"k1"}"#
            let plain = try await gateway.exchange("POST", "/v1/pull", body)
            let packed = try await gateway.exchange("POST", "/v1/pull", headers: ["Accept-Encoding: gzip"], body)
            #expect(plain["content-encoding"] == nil)
            #expect(packed["content-encoding"] == "gzip")
            #expect(packed.body.count < plain.body.count / 4)
            #expect(try gunzip(packed.body, count: plain.body.count) == plain.body)
        }
    }

    @Test func respondsToMalformedHTTPWithAProblem() async throws {
        try await withGateway { gateway in
            let client = try HTTPClient(port: gateway.port)
            try await client.send(Array("GET /v1/schema HTTP/1.1\r\n\r\n".utf8))
            let answer = try await client.answer()
            #expect(answer.status == 400)
            #expect(answer["content-type"] == "application/problem+json")
            #expect(answer.text.contains(#""status":400,"code":"invalid_request""#))
            let long = try await gateway.exchange("GET", "/" + String(repeating: "x", count: 5000))
            #expect(long.status == 414)
            #expect(long.text.contains(#""status":414,"code":"invalid_request""#))
        }
    }

    /// Decompresses with the system's library.
    private func gunzip(_ bytes: [UInt8], count: Int) throws -> [UInt8] {
        var stream = z_stream()
        try #require(inflateInit2_(&stream, 31, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK)
        defer { inflateEnd(&stream) }
        var output = [UInt8](repeating: 0, count: count + 1)
        var input = bytes
        // Both arrays stay where they are while zlib works on them.
        let code = input.withUnsafeMutableBufferPointer { input in
            output.withUnsafeMutableBufferPointer { output in
                stream.next_in = input.baseAddress
                stream.avail_in = UInt32(input.count)
                stream.next_out = output.baseAddress
                stream.avail_out = UInt32(output.count)
                return inflate(&stream, Z_FINISH)
            }
        }
        try #require(code == Z_STREAM_END)
        return Array(output.prefix(Int(stream.total_out)))
    }
}
