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
}
