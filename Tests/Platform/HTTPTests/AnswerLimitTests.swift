import HTTP
import TestSignals
import Testing

/// Clients that ask and do not read take a bounded part of the memory.
@Suite(.timeLimit(.minutes(5))) struct AnswerLimitTests {
    private static let large = 8 << 20

    /// Progress alone does not keep a share of the memory.
    @Test(arguments: [false, true]) func disconnectsAClientThatReadsTooSlowly(inTask: Bool) async throws {
        try await TestServer {
            $0.idleTimeout = .seconds(2)
            $0.leastReadRate = 1 << 30
            // Enough for the request to arrive; deadlines are checked as often.
            $0.requestTimeout = .seconds(2)
        } answer: { request in
            let large = HTTPResponse(status: 200, body: [UInt8](repeating: 0x61, count: 4 * Self.large))
            return inTask ? .task { large } : .response(large)
        }.run { server, port in
            let client = try await RawClient(port: port, receiveBuffer: 64 << 10)
            try await client.send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
            // Where the machine is busy, libmicrohttpd may find the client idle first, so what is counted is left open.
            #expect(try await client.readSlowly(everyMilliseconds: 20) < 4 * Self.large)
            while server.counters.answerBytesInFlight > 0 { await Task.yield() }
        }
    }

    private static func body(of request: HTTPRequest, _ sent: Signal<Int>) -> HTTPResponse {
        let size = request.segments[0].utf8.elementsEqual("large".utf8) ? large : 60_000
        var response = HTTPResponse(status: 200, body: [UInt8](repeating: 0x61, count: size))
        response.onSend = { sent.send($0) }
        return response
    }

    @Test(arguments: [false, true]) func refusesLargeResponsesWhileOthersAreUnread(inTask: Bool) async throws {
        let sent = Signal<Int>()
        try await TestServer {
            $0.maxAnswerBytesInFlight = 1 << 20
        } answer: { request in
            inTask ? .task { Self.body(of: request, sent) } : .response(Self.body(of: request, sent))
        }.run { server, port in
            let request = { (path: String) in "GET /\(path) HTTP/1.1\r\nHost: a\r\n\r\n" }
            let first = try await RawClient(port: port, receiveBuffer: 4096)
            // Larger than the limit: it goes through alone, more than the socket takes by itself.
            try await first.send(request("large"))
            while server.counters.answerBytesInFlight == 0 { await Task.yield() }
            #expect(server.counters.answerBytesInFlight == Self.large)
            let second = try await RawClient(port: port)
            try await second.send(request("large"))
            #expect(try await second.answer().status == 503)
            #expect(server.counters.refused(.overloaded) == 1)
            // What metrics count is what was sent.
            #expect([await sent.next(), await sent.next()] == [200, 503])
            // Small answers are always sent, on the same connection too.
            try await second.send(request("small"))
            #expect(try await second.answer().status == 200)
            #expect(try await first.answer().body.count == Self.large)
            while server.counters.answerBytesInFlight > 0 { await Task.yield() }
            try await second.send(request("large"))
            #expect(try await second.answer().body.count == Self.large)
            // One who leaves without reading gives its room back.
            try await first.send(request("large"))
            while server.counters.answerBytesInFlight == 0 { await Task.yield() }
            try await first.reset()
            while server.counters.answerBytesInFlight > 0 { await Task.yield() }
        }
    }

    /// Three of five times 8 MiB are its share; a caller's, where the handler names one, else its address's.
    @Test(arguments: [false, true]) func aClientHoldsAtMostAsMuchAsIsFree(isNamed: Bool) async throws {
        try await TestServer {
            $0.maxAnswerBytesInFlight = 5 * Self.large
        } bodyPolicy: { request in
            .acceptUpTo(1024, caller: request.headers.text(of: "x-caller"))
        } answer: { _ in
            .response(HTTPResponse(status: 200, body: [UInt8](repeating: 0x61, count: Self.large)))
        }.run { server, port in
            var unread: [RawClient] = []
            for (name, expected) in [("1", 200), ("1", 200), ("1", 200), ("1", 503), ("1", 503), ("2", 200)] {
                let client = try await RawClient(
                    port: port, from: isNamed ? "127.0.0.1" : "127.0.0.\(name)", receiveBuffer: 4096)
                unread.append(client)
                let caller = isNamed ? "X-Caller: \(name)\r\nContent-Length: 1\r\n\r\nx" : "\r\n"
                try await client.send("POST /large HTTP/1.1\r\nHost: a\r\n\(caller)")
                #expect(try await client.head() == expected)
            }
            #expect(server.counters.answerBytesInFlight == 4 * Self.large)
        }
    }

    /// What compression makes of it is of one response alone.
    @Test(arguments: [false, true]) func aSharedBodyCountsOnlyWhereItIsCompressed(isCompressed: Bool) async throws {
        // Of four bits each, of which gzip leaves half; it finds no repetition as far back.
        let block = (0..<(64 << 10)).map { _ in UInt8.random(in: 0..<16) }
        var body: [UInt8] = []
        while body.count < 3 * Self.large { body += block }
        let sent = Signal<Int>()
        try await TestServer {
            $0.maxAnswerBytesInFlight = 1 << 20
        } answer: { [body] _ in
            var response = HTTPResponse(status: 200, body: body, isCompressible: true)
            response.isShared = true
            response.onSend = { sent.send($0) }
            return .response(response)
        }.run { server, port in
            var unread: [RawClient] = []
            for expected in [200, isCompressed ? 503 : 200] {
                unread.append(try await RawClient(port: port, receiveBuffer: 4096))
                let accepted = isCompressed ? "Accept-Encoding: gzip\r\n" : ""
                try await unread.last?.send("GET / HTTP/1.1\r\nHost: a\r\n\(accepted)\r\n")
                #expect(await sent.next() == expected)
            }
            let counted = server.counters.answerBytesInFlight
            #expect(isCompressed ? (Self.large..<body.count).contains(counted) : counted == 0)
        }
    }
}
