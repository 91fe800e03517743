import HTTP
import TestSignals
import Testing

@Suite(.timeLimit(.minutes(5))) struct RequestTests {
    @Test func echoesABodyAndKeepsTheConnection() async throws {
        try await TestServer(answer: echo).run { server, port in
            let client = try await RawClient(port: port)
            for number in 0..<5 {
                try await client.send("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n\(number)!")
                let answer = try await client.answer()
                #expect(answer.status == 200)
                #expect(answer.text == "\(number)!")
            }
            #expect(server.counters.connectionsAccepted == 1)
            #expect(server.counters.requests == 5)
        }
    }

    @Test func servesPipelinedRequestsInOrder() async throws {
        try await TestServer(answer: { request in
            request.segments[0] == "slow" ? .task { text("slow") } : .response(text(request.segments[0]))
        }).run { _, port in
            let client = try await RawClient(port: port)
            let paths = (0..<40).map { $0 % 3 == 0 ? "slow" : "n\($0)" }
            try await client.send(paths.map { "GET /\($0) HTTP/1.1\r\nHost: a\r\n\r\n" }.joined())
            for path in paths {
                #expect(try await client.answer().text == path)
            }
        }
    }

    @Test func respondsToHeadWithTheLengthAndWithoutTheBody() async throws {
        try await TestServer(answer: { _ in .response(text("12345")) }).run { _, port in
            let client = try await RawClient(port: port)
            try await client.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(try await client.answer(toHead: true).headers["content-length"] == "5")
            #expect(try await client.answer().text == "12345")
        }
    }

    @Test func respondsToHeadOfAStreamWithoutABody() async throws {
        let ended = Signal<HTTPBodyStream.End>()
        try await TestServer(answer: { _ in
            .response(HTTPResponse(status: 200, stream: HTTPBodyStream(onEnd: { ended.send($0) })))
        }).run { _, port in
            let client = try await RawClient(port: port)
            try await client.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(try await client.answer(toHead: true).status == 200)
            #expect(await ended.next() == .broken)
        }
    }

    @Test func acceptsAChunkedBody() async throws {
        try await TestServer(answer: echo).run { _, port in
            let client = try await RawClient(port: port)
            try await client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
            try await client.send("A;x=y\r\n0123456789\r\n0\r\nTrailer: t\r\n\r\n")
            #expect(try await client.answer().text == "abc0123456789")
            try await client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(try await client.answer().status == 200)
        }
    }

    @Test func acceptsALargeBodyWithZeroPadding() async throws {
        let body = (0..<1_000_003).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        let padding = Signal<Bool>()
        try await TestServer(answer: { request in
            request.body.withUnsafeBytes { bytes in
                let behind = UnsafeRawBufferPointer(start: bytes.baseAddress! + bytes.count, count: HTTPBody.padding)
                padding.send(behind.allSatisfy { $0 == 0 })
            }
            return echo(request)
        }).run { _, port in
            let client = try await RawClient(port: port)
            try await client.send("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: \(body.count)\r\n\r\n")
            try await client.send(body)
            #expect(await padding.next())
            #expect(try await client.answer().body == body)
        }
    }

    @Test func sends100ContinueToAClientThatExpectsIt() async throws {
        try await TestServer(answer: echo).run { _, port in
            let client = try await RawClient(port: port)
            try await client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
            #expect(try await client.answer().status == 100)
            try await client.send("ok")
            #expect(try await client.answer().text == "ok")
        }
    }

    @Test func passesTheDecodedRequestToTheHandler() async throws {
        let seen = Signal<HTTPRequest>()
        try await TestServer(answer: { request in
            seen.send(request)
            return .response(HTTPResponse(status: 204))
        }).run { _, port in
            let client = try await RawClient(port: port)
            try await client.send(
                "PROPFIND /v1/a%2Fb/%C3%A9/?q=1+2%2B&flag&=x HTTP/1.1\r\nHOST: a\r\nX-Odd:  \u{e9}: b \t\r\nx-odd: 2\r\n\r\n"
            )
            let request = await seen.next()
            #expect(request.method == .other("PROPFIND"))
            #expect(request.rawPath == "/v1/a%2Fb/%C3%A9/")
            #expect(request.segments == ["v1", "a/b", "é", ""])
            #expect(request.query.map { "\($0.name)=\($0.value)" } == ["q=1 2+", "flag=", "=x"])
            #expect(request.headers.bytes(of: "x-ODD").map(Array.init) == Array("\u{e9}: b".utf8))
            #expect(request.headers.all("X-Odd").count == 2)
            #expect(request.headers.text(of: "host") == "a")
            #expect(request.headers.text(of: "absent") == nil)
            #expect(request.version == .http11)
            #expect(request.peer.address == "127.0.0.1")
            #expect(try await client.answer().status == 204)
        }
    }

    @Test func closesTheConnectionAfterHTTP10AndAfterClose() async throws {
        try await TestServer(answer: { _ in .response(text("x")) }).run { _, port in
            for head in ["GET / HTTP/1.0\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"] {
                let client = try await RawClient(port: port)
                try await client.send(head)
                let all = try await client.rest()
                #expect(all.hasPrefix("HTTP/1.") && all.hasSuffix("\r\n\r\nx"))
            }
        }
    }

    @Test(arguments: [
        "GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /%ff HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /a%00b HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /?a=%f HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET a HTTP/1.1\r\nHost: a\r\n\r\n",
        "G(T / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabcd\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length : 53\r\n\r\nGET /inside HTTP/1.1\r\nHost: a\r\nX-Filled-Up: to 53 by\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX(y): 1\r\n\r\n",
        "nonsense\r\n\r\n",
        "GET / HTTP/1.1\r\nno colon\r\n\r\n",
        "\u{0}\u{1}\u{2}\r\n\r\n",
    ])
    func refusesWhatIsNoRequest(request: String) async throws {
        let called = Signal<Void>()
        try await TestServer(answer: { _ in
            called.send()
            return .response(text("handled"))
        }).run { server, port in
            let client = try await RawClient(port: port)
            try await client.send(request)
            try await client.finishSending()
            let all = try await client.rest()
            #expect(all.isEmpty || all.hasPrefix("HTTP/1.1 400 ") || all.hasPrefix("HTTP/1.0 400 "))
            #expect(!all.contains("handled"))
            let other = try await RawClient(port: port)
            try await other.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(try await other.answer().text == "handled")
        }
    }

    @Test func keepsTheConnectionAfterRefusingARequestWithoutABody() async throws {
        try await TestServer(answer: { _ in .response(text("fine")) }).run { server, port in
            let client = try await RawClient(port: port)
            try await client.send("GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(try await client.answer().status == 400)
            try await client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(try await client.answer().text == "fine")
            #expect(server.counters.refused(.malformed) == 1)
        }
    }

    @Test func responds500IfAResponseCannotBeSent() async throws {
        let events = Signal<String>()
        try await TestServer(
            { $0.onEvent = { if case .invalidResponse(let reason) = $0 { events.send(reason) } } },
            answer: { request in
                .response(
                    request.segments == ["status"]
                        ? HTTPResponse(status: 77)
                        : HTTPResponse(status: 200, headers: [HTTPField("X", "a\r\nSet-Cookie: b")]))
            }
        ).run { server, port in
            let client = try await RawClient(port: port)
            for path in ["status", "split"] {
                try await client.send("GET /\(path) HTTP/1.1\r\nHost: a\r\n\r\n")
                let answer = try await client.answer()
                #expect(answer.status == 500)
                #expect(answer.headers["set-cookie"] == nil)
                #expect(!(await events.next()).isEmpty)
            }
            #expect(server.counters.refused(.invalidResponse) == 2)
        }
    }
}
