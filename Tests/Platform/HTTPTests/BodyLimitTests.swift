import HTTP
import TestSignals
import Testing

@Suite(.timeLimit(.minutes(5))) struct BodyLimitTests {
    @Test(arguments: [0, 200_000])
    func refusesADeclaredBodyAboveTheLimitBeforeItIsRead(sentAnyhow: Int) async throws {
        try await TestServer({ $0.maxBodyBytes = 1000 }, answer: echo).run { server, port in
            let client = try await RawClient(port: port)
            try await client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 8000000\r\n\r\n")
            try await client.send([UInt8](repeating: 1, count: sentAnyhow))
            #expect(try await client.answer().status == 413)
            try await client.finishSending()
            #expect(try await client.rest() == "")
            #expect(server.counters.refused(.bodyTooLarge) == 1)
            #expect(server.counters.bytesInFlight == 0)
        }
    }

    @Test func refusesAChunkedBodyAsSoonAsItExceedsTheLimit() async throws {
        try await TestServer({ $0.maxBodyBytes = 1000 }, answer: echo).run { server, port in
            let client = try await RawClient(port: port)
            try await client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
            try await client.send("3E9\r\n" + String(repeating: "x", count: 1001))
            #expect(try await client.answer().status == 413)
            try await client.finishSending()
            #expect(try await client.rest() == "")
            #expect(server.counters.bytesInFlight == 0)
        }
    }

    @Test func acceptsABodyOfExactlyTheLimit() async throws {
        try await TestServer({ $0.maxBodyBytes = 1000 }, answer: echo).run { _, port in
            let client = try await RawClient(port: port)
            let body = String(repeating: "x", count: 1000)
            try await client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n" + body)
            #expect(try await client.answer().text == body)
            try await client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
            try await client.send("3E8\r\n" + body + "\r\n0\r\n\r\n")
            #expect(try await client.answer().text == body)
        }
    }

    @Test func refusesATooLargeBodyInsteadOfSending100Continue() async throws {
        try await TestServer({ $0.maxBodyBytes = 1000 }, answer: echo).run { _, port in
            let client = try await RawClient(port: port)
            try await client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\nExpect: 100-continue\r\n\r\n")
            #expect(try await client.answer().status == 413)
            #expect(try await client.rest() == "")
        }
    }

    @Test func theApplicationFormatsRefusals() async throws {
        try await TestServer(
            {
                $0.maxBodyBytes = 1000
                $0.formatRefusal = { refusal in
                    HTTPResponse(
                        status: 200, headers: [HTTPField("Content-Type", "application/problem+json")],
                        body: Array("{\"status\":\(refusal.reason.status)}".utf8))
                }
            }, answer: echo
        ).run { _, port in
            let client = try await RawClient(port: port)
            try await client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n")
            let answer = try await client.answer()
            #expect(answer.status == 413)
            #expect(answer.headers["content-type"] == "application/problem+json")
            #expect(answer.text == "{\"status\":413}")
        }
    }

    @Test func theApplicationDecidesBeforeTheBodyIsRead() async throws {
        try await TestServer(
            bodyPolicy: { request in
                switch request.segments.first {
                case "small": .acceptUpTo(5)
                case "closed": .refuse(HTTPResponse(status: 401, headers: [HTTPField("WWW-Authenticate", "Bearer")]))
                default: .accept
                }
            }, answer: echo
        ).run { _, port in
            for (path, length, status) in [("small", 5, 200), ("small", 6, 413), ("closed", 1, 401), ("any", 6, 200)] {
                let client = try await RawClient(port: port)
                try await client.send("POST /\(path) HTTP/1.1\r\nHost: a\r\nContent-Length: \(length)\r\n\r\n")
                try await client.send([UInt8](repeating: 65, count: length))
                #expect(try await client.answer().status == status, "\(path) \(length)")
            }
        }
    }

    @Test func refusesBodiesWhileTheBudgetIsUsedUpAndRecovers() async throws {
        let held = Signal<Void>()
        let release = Signal<Void>()
        try await TestServer(
            { $0.maxBytesInFlight = 100_000 },
            answer: { request in
                guard request.segments == ["hold"] else { return echo(request) }
                return .task {
                    held.send()
                    await release.next()
                    return text("\(request.body.count)")
                }
            }
        ).run { server, port in
            let holder = try await RawClient(port: port)
            let body = [UInt8](repeating: 7, count: 60_000)
            try await holder.send("POST /hold HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\n\r\n")
            try await holder.send(body)
            await held.next()
            #expect(server.counters.bytesInFlight >= 60_000)

            let other = try await RawClient(port: port)
            try await other.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\n\r\n")
            let refused = try await other.answer()
            #expect(refused.status == 503)
            #expect(refused.headers["retry-after"] == "1")
            let plain = try await RawClient(port: port)
            try await plain.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(try await plain.answer().status == 200)

            release.send()
            #expect(try await holder.answer().text == "60000")
            try await plain.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\n\r\n")
            try await plain.send(body)
            #expect(try await plain.answer().body.count == 60_000)
            #expect(server.counters.refused(.overloaded) == 1)
            await server.stop(patience: .seconds(20))
            #expect(server.counters.bytesInFlight == 0)
        }
    }

    /// Whoever has several bodies leaves a share to others; a caller is one wherever it connects from.
    @Test(arguments: [false, true]) func bodiesOfOneHolderLeaveAShareToOthers(isNamed: Bool) async throws {
        let held = Signal<Void>()
        let release = Signal<Void>()
        try await TestServer(
            {
                $0.maxBytesInFlight = 1_000_000
                if isNamed { $0.maxConnectionsPerClient = nil }
            },
            bodyPolicy: { .acceptUpTo(1_000_000, caller: isNamed ? $0.segments[0] : nil) },
            answer: { request in
                .task {
                    held.send()
                    await release.next()
                    return text("\(request.body.count)")
                }
            }
        ).run { server, port in
            func post(_ path: String, _ size: Int) async throws -> RawClient {
                let client = try await RawClient(port: port)
                try await client.send("POST /\(path) HTTP/1.1\r\nHost: a\r\nContent-Length: \(size)\r\n\r\n")
                try await client.send([UInt8](repeating: 7, count: size))
                return client
            }
            var holders: [RawClient] = []
            for _ in 0..<2 {
                holders.append(try await post("greedy", 220_000))
                await held.next()
            }
            let third = try await post("greedy", 220_000)
            #expect(try await third.answer().status == 503)
            if isNamed {
                holders.append(try await post("other", 220_000))
                await held.next()
            }
            for _ in holders { release.send() }
            for holder in holders { #expect(try await holder.answer().text == "220000") }
            // One body may take all.
            holders = [try await post("greedy", 900_000)]
            await held.next()
            release.send()
            #expect(try await holders[0].answer().text == "900000")
            await server.stop(patience: .seconds(20))
            #expect(server.counters.bytesInFlight == 0)
        }
    }

    @Test func incompleteBodiesDoNotBlockEachOther() async throws {
        try await TestServer({ $0.maxBytesInFlight = 100_000 }, answer: echo).run { server, port in
            let clients = [try await RawClient(port: port), try await RawClient(port: port)]
            let body = String(repeating: "x", count: 60_000)
            for client in clients {
                try await client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nEA60\r\n\(body)")
                // Two bodies that grow at the same time may both find that they do not fit.
                while client === clients[0], server.counters.bytesInFlight < 60_000 { await Task.yield() }
            }
            // Neither has sent all; they cannot both fit.
            let refused = try await withThrowingTaskGroup(of: (Int, Int).self) { group in
                for number in clients.indices {
                    group.addTask { (number, try await clients[number].answer().status) }
                }
                let (number, status) = try await group.next()!
                #expect(status == 503)
                // The other's answer comes when its body ends; its client is reading on a queue of its own.
                try await finishBody(of: clients[1 - number])
                #expect(try await group.next()!.1 == 200)
                return number
            }
            #expect((0...1).contains(refused))
            #expect(server.counters.bytesInFlight == 0)
        }
    }

    private func finishBody(of client: RawClient) async throws {
        try await client.sendWhileReading("\r\n0\r\n\r\n")
    }

    @Test func doesNotHandleARequestWithAnIncompleteBody() async throws {
        let handled = Signal<String>()
        try await TestServer(answer: { request in
            handled.send(request.rawPath)
            return echo(request)
        }).run { server, port in
            for framing in ["Content-Length: 10\r\n\r\n12345", "Transfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n"] {
                let broken = try await RawClient(port: port)
                try await broken.send("POST /broken HTTP/1.1\r\nHost: a\r\n" + framing)
                try await broken.finishSending()
                #expect(try await broken.rest() == "")
            }
            let whole = try await RawClient(port: port)
            try await whole.send("POST /whole HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx")
            #expect(try await whole.answer().text == "x")
            #expect(await handled.next() == "/whole")
            await server.stop(patience: .seconds(20))
            #expect(server.counters.bytesInFlight == 0)
        }
    }
}
