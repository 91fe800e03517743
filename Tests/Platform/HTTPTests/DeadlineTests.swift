import HTTP
import TestSignals
import Testing

@Suite(.timeLimit(.minutes(5))) struct DeadlineTests {
    @Test(arguments: [
        "GET / HTTP/1.1\r\nHost: a\r\nX: ", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n",
    ])
    func answers408ToARequestThatTrickles(start: String) async throws {
        try await TestServer({ $0.requestTimeout = .milliseconds(1000) }, answer: echo).run { server, port in
            let client = try await RawClient(port: port, sending: start)
            try await client.trickle("x", everyMilliseconds: 20)
            #expect(try await client.answer().status == 408)
            #expect(try await client.rest() == "")
            // It counts after it has answered, at the latest before it has stopped.
            await server.stop(patience: .zero)
            #expect(server.counters.refused(.timedOut) == 1)
            #expect(server.counters.bytesInFlight == 0)
        }
    }

    @Test(arguments: ["", "GET / HT"])
    func closesAConnectionThatSendsNoRequestLine(start: String) async throws {
        try await TestServer({ $0.requestTimeout = .milliseconds(1000) }, answer: echo).run { server, port in
            let client = try await RawClient(port: port, sending: start)
            #expect(try await client.rest() == "")
            #expect(server.counters.connectionsTimedOut == 1)
        }
    }

    @Test func limitsTheTimeOfTheSecondRequest() async throws {
        try await TestServer({ $0.requestTimeout = .milliseconds(1000) }, answer: echo).run { _, port in
            let client = try await RawClient(port: port, sending: "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(try await client.answer().status == 200)
            // This one comes later and is cut: so the time that the first one had is over.
            let silent = try await RawClient(port: port)
            #expect(try await silent.rest() == "")
            try await client.send("GET / HTTP/1.1\r\nHost: a\r\n")
            #expect(try await client.answer().status == 408)
        }
    }

    @Test func closesAnIdleConnection() async throws {
        try await TestServer({ $0.idleTimeout = .seconds(1) }, answer: echo).run { _, port in
            let client = try await RawClient(port: port, sending: "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(try await client.answer().status == 200)
            #expect(try await client.rest() == "")
        }
    }

    @Test func doesNotLimitTheTimeOfAResponse() async throws {
        let gate = Signal<Void>()
        let started = Signal<Void>()
        try await TestServer(
            {
                $0.requestTimeout = .milliseconds(1000)
            },
            answer: { _ in
                .task {
                    started.send()
                    await gate.next()
                    return text("slow")
                }
            }
        ).run { _, port in
            let slow = try await RawClient(port: port, sending: "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            await started.next()
            // This one comes later and is cut: so the time of the slow one has passed, too.
            let silent = try await RawClient(port: port)
            #expect(try await silent.rest() == "")
            gate.send()
            #expect(try await slow.answer().text == "slow")
            try await slow.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            await started.next()
            gate.send()
            #expect(try await slow.answer().text == "slow")
        }
    }

    @Test func manySilentConnectionsLeaveOthersUnaffected() async throws {
        try await TestServer(
            {
                $0.requestTimeout = .seconds(2)
                $0.maxConnectionsPerClient = 600
            }, answer: echo
        ).run { server, port in
            var silent: [RawClient] = []
            for number in 0..<500 {
                let start = number % 2 == 0 ? "GET / HTTP/1.1\r\nX: " : ""
                silent.append(try await RawClient(port: port, sending: start))
            }
            let other = try await RawClient(port: port, from: "127.0.0.2")
            for _ in 0..<100 {
                try await other.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                #expect(try await other.answer().status == 200)
            }
            for (number, client) in silent.enumerated() {
                let end = try await client.rest()
                #expect(end.isEmpty == (number % 2 == 1))
            }
            await server.stop(patience: .zero)
            #expect(server.counters.refused(.timedOut) == 250)
            #expect(server.counters.connectionsTimedOut == 250)
        }
    }
}
