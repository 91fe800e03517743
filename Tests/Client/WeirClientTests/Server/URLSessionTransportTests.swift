import Foundation
import Fuzzing
import Testing
import WeirClient

@Suite(.timeLimit(.minutes(2))) struct URLSessionTransportTests {
    private func request(_ server: LocalServer, _ method: String = "GET", body: String = "") -> TransportRequest {
        TransportRequest(
            method: method, url: server.url.appendingPathComponent("v1/x"), headers: ["authorization": "Bearer t"],
            body: Array(body.utf8), timeout: 30)
    }

    @Test func sendsARequestAndReceivesTheWholeResponse() async throws {
        let text = String(repeating: "0123456789", count: 100_000)
        let server = try LocalServer([
            [
                .write("HTTP/1.1 429 Too Many\r\nRetry-After: 7\r\nContent-Length: \(text.utf8.count)\r\n\r\n"),
                .write(text),
            ]
        ])
        let response = try await URLSessionTransport().send(request(server, "POST", body: "{}"))
        #expect(response.status == 429)
        #expect(response.headers["retry-after"] == "7")
        #expect(response.body == Array(text.utf8))
        let received = try #require(await server.request())
        #expect(received.hasPrefix("POST /v1/x HTTP/1.1\r\n"))
        #expect(received.contains("Bearer t"))
        #expect(received.hasSuffix("\r\n\r\n{}"))
    }

    @Test func aRejectedTokenIsAnOrdinaryResponse() async throws {
        let server = try LocalServer([
            [
                .write(
                    "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer error=\"invalid_token\"\r\n"
                        + "Content-Length: 2\r\n\r\n{}")
            ]
        ])
        let response = try await URLSessionTransport().send(request(server))
        #expect(response.status == 401)
        #expect(response.body == Array("{}".utf8))
    }

    @Test func aBodyThatIsCutFails() async throws {
        let server = try LocalServer([[.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{\"a\"")]])
        await #expect(throws: (any Error).self) { try await URLSessionTransport().send(request(server)) }
    }

    @Test func aServerThatAnswersNothingOrNothingOfHTTPFails() async throws {
        let server = try LocalServer([[], [.write("220 mail.example.org ESMTP\r\n")]])
        let transport = URLSessionTransport()
        await #expect(throws: (any Error).self) { try await transport.send(request(server)) }
        await #expect(throws: (any Error).self) { try await transport.send(request(server)) }
    }

    @Test func doesNotFollowRedirections() async throws {
        let server = try LocalServer([
            [.write("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n")]
        ])
        let response = try await URLSessionTransport().send(request(server))
        #expect(response.status == 302)
    }

    @Test func piecesArriveWhileTheServerWrites() async throws {
        let (gate, opened) = AsyncStream.makeStream(of: Void.self)
        let server = try LocalServer([
            [
                .write("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"),
                .write("3\r\n:a\n\r\n"), .wait(gate), .write("3\r\n:b\n\r\n"), .write("0\r\n\r\n"),
            ]
        ])
        let stream = try await URLSessionTransport().open(request(server))
        #expect(stream.status == 200)
        var received = ""
        for try await piece in stream.pieces {
            received += String(decoding: piece, as: UTF8.self)
            // The server writes the rest only now.
            if received == ":a\n" { opened.finish() }
        }
        #expect(received == ":a\n:b\n")
    }

    @Test func whoStopsReadingEndsTheConnection() async throws {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        let server = try LocalServer([
            [.awaitEnd], [.write(head + "1\r\na\r\n"), .awaitEnd], [.write(head + "1\r\na\r\n"), .awaitEnd],
        ])
        let transport = URLSessionTransport()
        // Before the response.
        let message = request(server)
        let waiting = Task { try await transport.send(message) }
        #expect(await server.request() != nil)
        waiting.cancel()
        await #expect(throws: (any Error).self) { try await waiting.value }
        // The reader is cancelled.
        let reading = Task {
            var count = 0
            for try await _ in try await transport.open(message).pieces { count += 1 }
            return count
        }
        #expect(await server.request() != nil)
        reading.cancel()
        _ = await reading.result
        // The stream is dropped.
        do {
            let stream = try await transport.open(message)
            for try await _ in stream.pieces { break }
        }
        #expect(await server.request() != nil)
        // The server's thread has seen all three ends.
        #expect(await server.request() == nil)
    }

    /// Also before it is on its way, and when its response is complete.
    @Test func aRequestMayBeCancelledAtAnyMoment() async throws {
        let count = TestLength.count(200, long: 1000)
        let transport = URLSessionTransport()
        try await withThrowingTaskGroup { group in
            for _ in 0..<8 {
                group.addTask {
                    let response = LocalServer.Step.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
                    let server = try LocalServer(Array(repeating: [response], count: count))
                    let message = request(server)
                    var pause = 0
                    for number in 0..<count {
                        let sending = Task { try await transport.send(message) }
                        for _ in 0..<(number.isMultiple(of: 2) ? number % 16 : pause) { await Task.yield() }
                        sending.cancel()
                        // The next is cancelled a little earlier, or later: about when the response is complete.
                        if case .success(let response) = await sending.result {
                            #expect(response.body == Array("{}".utf8))
                            pause = max(0, pause - 1)
                        } else {
                            pause += 1
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
    }
}
