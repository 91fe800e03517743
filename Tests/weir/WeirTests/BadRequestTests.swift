import Foundation
import Testing

/// Invalid requests get the error code of the contract, and other clients are served meanwhile.
@Suite struct BadRequestTests {
    /// A request and the expected answer.
    struct Case: Sendable {
        let name: String
        var path = "/v1/sync"
        var headers: [String: String] = [:]
        var body: Data
        let status: Int
        let code: String

        init(_ text: String, _ status: Int, _ code: String) {
            self.init(name: text, Data(text.utf8), status, code)
        }

        init(
            name: String, _ body: Data, _ status: Int, _ code: String, path: String = "/v1/sync",
            headers: [String: String] = [:]
        ) {
            self.name = String(name.prefix(60))
            self.path = path
            self.headers = headers
            self.body = body
            self.status = status
            self.code = code
        }

        /// A body for a device with one more field.
        static func field(_ text: String, path: String = "/v1/sync") -> Case {
            Case(name: text, Data(#"{"knowledgeId":"k1",\#(text)}"#.utf8), 422, "invalid_request", path: path)
        }

        static func vector(_ entries: String...) -> Case { field(#""knowledge":[\#(entries.joined(separator: ","))]"#) }
    }

    private static func entry(_ stamp: String, owner: String = #""abc""#, device: String = #""k1""#) -> String {
        #"{"syncId":\#(owner),"knowledgeId":\#(device),"lastTimeStamp":\#(stamp)}"#
    }

    private static let malformed: [Case] =
        [
            "", " ", "{", "}", "[1,]", #"{"knowledgeId":"k1",}"#, #"{"knowledgeId":"k1"}}"#, "nul", "01", "{'a':1}",
            #"{"knowledgeId":"\ud800"}"#, #"{"knowledgeId":"k1","\udfff":1}"#,
            #"{"knowledgeId":"k1","changes":[{"values":{"name":"\ud83d\u0041"}}]}"#,
            #"{"knowledgeId":"k1","changes":[{"id":"p1]}"#, "\u{FEFF}{}",
        ].map { Case($0, 400, "malformed_json") } + [
            Case(name: "a NUL", Data("{\"knowledgeId\":\"k\0\"}".utf8), 400, "malformed_json"),
            Case(name: "no UTF-8", Data(#"{"knowledgeId":""#.utf8) + [0xFF] + Data(#""}"#.utf8), 400, "malformed_json"),
            Case(
                name: "an overlong NUL", Data(#"{"knowledgeId":""#.utf8) + [0xC0, 0x80] + Data(#""}"#.utf8), 400,
                "malformed_json"),
            Case(
                name: "a surrogate in UTF-8 within a value",
                Data(#"{"knowledgeId":"k1","changes":[{"values":{"name":""#.utf8) + [0xED, 0xA0, 0x80]
                    + Data(#""}}]}"#.utf8), 400, "malformed_json"),
            Case(
                name: "a megabyte of brackets", Data(repeating: UInt8(ascii: "["), count: 1 << 20), 400,
                "malformed_json"),
            Case(
                name: "a megabyte of nesting within a value",
                Data(#"{"knowledgeId":"k1","changes":[{"values":{"name":"#.utf8)
                    + Data(repeating: UInt8(ascii: "["), count: 1 << 19)
                    + Data(repeating: UInt8(ascii: "]"), count: 1 << 19) + Data("}}]}".utf8), 400, "malformed_json"),
            Case(
                name: "a megabyte of objects", Data(String(repeating: #"{"a":"#, count: 200_000).utf8), 400,
                "malformed_json"),
        ]

    private static let envelopes: [Case] =
        ["[]", "17", "null", #""text""#, "{}", #"{"knowledgeId":7}"#, #"{"knowledgeId":""}"#]
        .map { Case($0, 422, "invalid_request") }
        + [
            Case(#"{"knowledgeId":"*"}"#, 422, "invalid_request"),
            Case(#"{"knowledgeId":"a\u0000b"}"#, 422, "invalid_request"),
            Case(#"{"knowledgeId":"\#(String(repeating: "k", count: 256))"}"#, 422, "invalid_request"),
            Case(#"{"knowledgeId":"k1","knowledgeId":"k1"}"#, 422, "invalid_request"),
            .field(#""batch":"7""#), .field(#""batch":0"#), .field(#""batch":-1"#), .field(#""batch":1.5"#),
            .field(#""batch":9007199254740992"#), .field(#""batch":1e400"#), .field(#""changes":{}"#),
            .field(#""changes":"[]""#), .field(#""changes":null"#), .field(#""atomic":1"#), .field(#""epoch":5"#),
            .field(#""schemaVersion":[]"#), .field(#""limit":0"#), .field(#""limit":-9"#), .field(#""limit":"9""#),
            .field(#""compact":0"#), .field(#""knowledge":{}"#), .field(#""wait":-1"#, path: "/v1/pull"),
            .field(#""wait":"1""#, path: "/v1/pull"), .field(#""include":[0]"#, path: "/v1/pull"),
            .field(#""include":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]"#, path: "/v1/pull"),
        ]

    private static let vectors: [Case] = [
        .vector(entry("-1")), .vector(entry("9007199254740992")), .vector(entry("1e300")), .vector(entry("\"5\"")),
        .vector(entry("null")), .vector(entry("1.5")), .vector(entry("18446744073709551616")),
        .vector(entry("1"), entry("2")), .vector(entry("1", device: #""*""#), entry("1", device: #""*""#)),
        .vector(entry("1", owner: #""""#)), .vector(entry("1", owner: #""a\u0000""#)), .vector(entry("1", owner: "7")),
        .vector(entry("1", device: #""""#)), .vector("{}"), .vector("[]"), .vector("null"),
        .vector(#"{"syncId":"abc","knowledgeId":"k1","lastTimeStamp":1,"lastTimeStamp":1}"#),
        .vector(entry("1", device: "\"\(String(repeating: "k", count: 256))\"")),
    ]

    private static let sizes: [Case] = [
        Case(
            name: "ten megabytes",
            Data(#"{"knowledgeId":"k1","batch":1,"changes":[],"x":""#.utf8)
                + Data(repeating: UInt8(ascii: "x"), count: 10_000_000) + Data(#""}"#.utf8), 413, "batch_too_large"),
        Case(
            name: "more changes than allowed",
            Data(#"{"knowledgeId":"k1","changes":["#.utf8) + Data(String(repeating: "0,", count: 10_000).utf8)
                + Data("0]}".utf8), 413, "batch_too_large"),
        Case(name: "a gzip bomb", Gzip.bomb, 413, "batch_too_large", headers: ["Content-Encoding": "gzip"]),
        Case(
            name: "no gzip", Data("{}".utf8), 400, "invalid_request", headers: ["Content-Encoding": "gzip"]),
        Case(
            name: "half of a gzip", Gzip.bomb.prefix(1000), 400, "invalid_request",
            headers: ["Content-Encoding": "gzip"]),
        Case(
            name: "another encoding", Data("{}".utf8), 415, "unsupported_media_type",
            headers: ["Content-Encoding": "br"]),
        Case(
            name: "another type", Data("{}".utf8), 415, "unsupported_media_type",
            headers: ["Content-Type": "text/plain"]),
        Case(
            name: "another character set", Data("{}".utf8), 415, "unsupported_media_type",
            headers: ["Content-Type": "application/json; charset=latin1"]),
        Case(name: "another path", Data("{}".utf8), 404, "not_found", path: "/v1/nothing"),
        Case(name: "another method", Data("{}".utf8), 405, "method_not_allowed", path: "/v1/schema"),
        Case(name: "a long target", Data("{}".utf8), 414, "invalid_request", path: "/v1/sync?" + pad(2500)),
        Case(name: "a broken escape", Data("{}".utf8), 400, "invalid_request", path: "/v1/%zz"),
        Case(
            name: "long headers", Data("{}".utf8), 431, "invalid_request", headers: ["X-Long": pad(4200)]),
        Case(
            name: "links that cannot be read", Data("{}".utf8), 401, "unauthenticated",
            headers: ["X-Sync-Links": "abc:own"]),
        Case(name: "a caller with a NUL", Data("{}".utf8), 401, "unauthenticated", headers: ["X-Sync-Id": "a%00"]),
        Case(name: "a caller that is no UTF-8", Data("{}".utf8), 401, "unauthenticated", headers: ["X-Sync-Id": "%ff"]),
    ]

    private static func pad(_ count: Int) -> String { String(repeating: "x", count: count) }

    @Test func eachGetsItsCodedAnswerAndNothingIsApplied() async throws {
        let weir = try await TestServer.start()
        var bystander = HealthyDevice(weir)
        let client = DeviceClient(port: weir.port, syncID: "abc")
        for wrong in Self.malformed + Self.envelopes + Self.vectors + Self.sizes {
            let answer = try await bystander.watch {
                try await client.post(wrong.path, bytes: wrong.body, headers: wrong.headers)
            }
            Self.check(answer, wrong.status, wrong.code, wrong.name)
        }
        try await bystander.check(weir)
        // The number of the rejected batches is unused.
        let good = try await client.sync([
            "knowledgeId": "k1", "batch": 1, "changes": [TestDevice.change("p1", ["name": "A"])],
        ])
        #expect(TestDevice.verdicts(good) == ["applied"])
        #expect(await weir.stop() == 0)
    }

    /// A problem as docs/errors.md has it.
    static func check(_ answer: DeviceClient.Answer, _ status: Int, _ code: String, _ name: String) {
        let text = String(decoding: answer.body.prefix(300), as: UTF8.self)
        #expect(answer.status == status, "\(name): \(text)")
        #expect(answer.headers["content-type"] == "application/problem+json", "\(name): \(text)")
        let problem = (try? answer.json()) ?? nil
        #expect(problem["code"].string == code, "\(name): \(text)")
        #expect(problem["status"].int == status, "\(name): \(text)")
        #expect(problem["type"].string == "/docs/errors.md#\(code)", "\(name): \(text)")
        #expect(problem["title"].string?.isEmpty == false && problem["detail"].string?.isEmpty == false, "\(name)")
        #expect((answer.headers["retry-after"] != nil) == [429, 503].contains(status), "\(name)")
    }

    @Test func aBodyWithoutAnAnnouncedLengthIsBoundedAsWell() async throws {
        let weir = try await TestServer.start()
        var bystander = HealthyDevice(weir)
        let head = "POST /v1/sync HTTP/1.1\r\nHost: localhost\r\nX-Sync-Id: abc\r\nConnection: close\r\n"
        let port = weir.port
        for (name, headers, chunk) in [
            ("chunks", "", Data(repeating: UInt8(ascii: " "), count: 100_000)),
            ("a gzip bomb in chunks", "Content-Encoding: gzip\r\n", Gzip.bomb),
        ] {
            let answer = try await bystander.watch {
                try await RawConnection.onThread {
                    let connection = try RawConnection(port: port)
                    connection.send((head + headers + "Transfer-Encoding: chunked\r\n\r\n").utf8)
                    // Until the server stops reading.
                    for _ in 0..<1000 {
                        let size = Array("\(String(chunk.count, radix: 16))\r\n".utf8)
                        guard connection.send(size + chunk + Array("\r\n".utf8)) else { break }
                    }
                    return try DeviceClient.parse(try connection.rest())
                }
            }
            Self.check(answer, 413, "batch_too_large", name)
        }
        try await bystander.check(weir)
        #expect(await weir.stop() == 0)
    }

    @Test func anIncompleteBodyAppliesNothing() async throws {
        let weir = try await TestServer.start()
        var bystander = HealthyDevice(weir)
        let port = weir.port
        let body = #"{"knowledgeId":"k1","batch":1,"changes":[{"table":"person","id":"p1","values":{"name":"A"}}]}"#
        let head = "POST /v1/sync HTTP/1.1\r\nHost: localhost\r\nX-Sync-Id: abc\r\n"
        for cut in [
            head, head + "Content-Length: \(body.utf8.count)\r\n\r\n",
            head + "Content-Length: \(body.utf8.count + 1)\r\n\r\n" + body,
            head + "Transfer-Encoding: chunked\r\n\r\n" + String(body.utf8.count, radix: 16) + "\r\n" + body,
        ] {
            let answer = try await bystander.watch { try await RawConnection.exchange(Data(cut.utf8), port: port) }
            #expect(answer.isEmpty, "\(String(decoding: answer, as: UTF8.self))")
        }
        let client = DeviceClient(port: weir.port, syncID: "abc")
        #expect(try await client.get("/v1/batches/1?knowledgeId=k1").status == 404)
        try await bystander.check(weir)
        #expect(await weir.stop() == 0)
    }

    /// libmicrohttpd rejects these itself, with one of these statuses and its own page, or by closing the connection
    /// (docs/errors.md, invalid_request).
    private static let noHTTP: [(String, Int?)] = [
        ("GET /\r\n\r\n", 400), ("\u{1}\u{2}\u{3}\r\n\r\n", nil), ("GET / HTTP/9.9\r\n\r\n", 505),
        ("GET / HTTP/1.1\r\nHost: localhost\r\nno colon\r\n\r\n", 400),
        ("POST /v1/sync HTTP/1.1\r\nHost: localhost\r\nX-Sync-Id: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        ("POST /v1/sync HTTP/1.1\r\nHost: localhost\r\nX-Sync-Id: a\r\nContent-Length: -5\r\n\r\n", 400),
        (
            "POST /v1/sync HTTP/1.1\r\nHost: localhost\r\nX-Sync-Id: a\r\nContent-Length: 99999999999999999999\r\n\r\n",
            413
        ),
        ("GET / HTTP/1.1\r\nHost: localhost\r\nX: \(pad(9000))\r\n\r\n", 431),
        ("GET /\(pad(9000)) HTTP/1.1\r\nHost: localhost\r\n\r\n", 414),
    ]

    @Test func whatIsNoHTTPIsRefusedAndItsConnectionEnds() async throws {
        let weir = try await TestServer.start()
        var bystander = HealthyDevice(weir)
        let port = weir.port
        for (request, status) in Self.noHTTP {
            let data = try await bystander.watch { try await RawConnection.exchange(Data(request.utf8), port: port) }
            let name = Comment("\(request.prefix(60))")
            #expect(data.isEmpty == (status == nil), name)
            if let status {
                let answer = try DeviceClient.parse(data)
                #expect(answer.status == status, name)
                #expect(answer.headers["connection"] == "close" && answer.headers["content-type"] == nil, name)
            }
        }
        try await bystander.check(weir)
        #expect(await weir.stop() == 0)
    }
}
