import HTTP
import Testing

@Suite(.timeLimit(.minutes(5))) struct ConnectionLimitTests {
    private func isServed(_ client: RawClient) async throws -> Bool {
        do {
            try await client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            return try await client.answer().status == 200
        } catch is RawClient.Failure {
            return false
        }
    }

    @Test func closesConnectionsAboveTheLimitAtOnce() async throws {
        try await TestServer({ $0.maxConnections = 3 }, answer: echo).run { server, port in
            var clients: [RawClient] = []
            for _ in 0..<3 {
                clients.append(try await RawClient(port: port))
                #expect(try await isServed(clients.last!))
            }
            #expect(try await isServed(RawClient(port: port)) == false)
            #expect(server.counters.connectionsOverLimit == 1)
            for client in clients { #expect(try await isServed(client)) }

            try await clients[0].send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            _ = try await clients[0].rest()
            // The client sees the end a moment before the server has counted it.
            var attempts = 0
            while try await !isServed(RawClient(port: port)), attempts < 1000 { attempts += 1 }
            #expect(attempts < 1000)
        }
    }

    @Test func limitsTheConnectionsOfOneClient() async throws {
        try await TestServer({ $0.maxConnectionsPerClient = 2 }, answer: echo).run { server, port in
            let first = try await RawClient(port: port)
            let second = try await RawClient(port: port)
            #expect(try await isServed(first))
            #expect(try await isServed(second))
            #expect(try await isServed(RawClient(port: port)) == false)
            #expect(try await isServed(RawClient(port: port, from: "127.0.0.2")))
            #expect(server.counters.connectionsOverClientLimit == 1)
        }
    }

    @Test func refusesHeadersAboveTheLimit() async throws {
        try await TestServer({ $0.maxHeaderBytes = 2000 }, answer: echo).run { server, port in
            let client = try await RawClient(port: port)
            let value = String(repeating: "x", count: 2000)
            try await client.send("GET / HTTP/1.1\r\nHost: a\r\nX: \(value)\r\n\r\n")
            #expect(try await client.answer().status == 431)
            #expect(server.counters.refused(.headersTooLarge) == 1)
            try await client.send("GET / HTTP/1.1\r\nHost: a\r\nX: \(value.dropLast(200))\r\n\r\n")
            #expect(try await client.answer().status == 200)
        }
    }

    @Test func refusesHeadersFarAboveTheLimit() async throws {
        try await TestServer({ $0.maxHeaderBytes = 2000 }, answer: echo).run { _, port in
            for header in ["X: " + String(repeating: "x", count: 50_000), String(repeating: "a:b\r\n", count: 10_000)] {
                let client = try await RawClient(port: port)
                try await client.send("GET / HTTP/1.1\r\nHost: a\r\n\(header)")
                let end = try await client.rest()
                #expect(end.isEmpty || end.contains(" 431 "))
            }
        }
    }

    @Test func refusesATargetAboveTheLimit() async throws {
        try await TestServer({ $0.maxURLBytes = 100 }, answer: echo).run { _, port in
            let client = try await RawClient(port: port)
            try await client.send("GET /?a=\(String(repeating: "x", count: 96)) HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(try await client.answer().status == 200)
            try await client.send("GET /?a=\(String(repeating: "x", count: 97)) HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(try await client.answer().status == 414)
        }
    }
}
