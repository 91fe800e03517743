import Glibc
import HTTP
import TestSignals
import Testing

@Suite(.timeLimit(.minutes(5))) struct StartStopTests {
    @Test func stopWaitsForTheResponseInProgress() async throws {
        let started = Signal<Void>()
        let gate = Signal<Void>()
        // An address of its own, lest another test's server gets the port once it is free.
        let host = "127.0.0.3"
        try await TestServer(
            { $0.host = host },
            answer: { _ in
                .task {
                    started.send()
                    await gate.next()
                    return text("finished")
                }
            }
        ).run { server, port in
            let busy = try await RawClient(host, port: port)
            try await busy.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            await started.next()
            let idle = try await RawClient(host, port: port)
            await server.stopAccepting()
            #expect(try await idle.rest() == "")
            let refusal = await #expect(throws: RawClient.Failure.self) { try await RawClient(host, port: port) }
            #expect(refusal?.code == ECONNREFUSED)

            async let stopped: Void = server.stop(patience: .seconds(60))
            gate.send()
            let answer = try await busy.answer()
            #expect(answer.text == "finished")
            #expect(answer.headers["connection"]?.lowercased() == "close")
            await stopped
            #expect(server.counters.connections == 0)
        }
    }

    @Test func stopEndsWaitingRequests() async throws {
        let started = Signal<Void>()
        let cancelled = Signal<Void>()
        let ended = Signal<HTTPBodyStream.End>()
        try await TestServer(answer: { request in
            if request.segments == ["stream"] {
                return .response(HTTPResponse(status: 200, stream: HTTPBodyStream(onEnd: { ended.send($0) })))
            }
            return .task {
                let gate = Signal<Void>()
                started.send()
                await withTaskCancellationHandler {
                    await gate.next()
                } onCancel: {
                    gate.send()
                }
                cancelled.send()
                return text("late")
            }
        }).run { server, port in
            let task = try await RawClient(port: port)
            try await task.send("GET /task HTTP/1.1\r\nHost: a\r\n\r\n")
            let stream = try await RawClient(port: port)
            try await stream.send("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n")
            let half = try await RawClient(port: port)
            try await half.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n1")
            #expect(try await stream.head() == 200)
            await started.next()
            await server.stop(patience: .milliseconds(50))
            await cancelled.next()
            #expect(await ended.next() == .broken)
            #expect(try await task.rest() == "")
            #expect(try await stream.rest() == "")
            #expect(try await half.rest() == "")
        }
    }

    @Test func stopsWhileClientsKeepSending() async throws {
        for round in 0..<5 {
            try await TestServer(answer: { request in
                round % 2 == 0 ? echo(request) : .task { text("x") }
            }).run { server, port in
                let served = Signal<Void>()
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for _ in 0..<10 {
                        group.addTask {
                            do {
                                let client = try await RawClient(port: port)
                                while true {
                                    try await client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                                    _ = try await client.answer()
                                    served.send()
                                }
                            } catch is RawClient.Failure {
                                // The server has stopped.
                            }
                        }
                    }
                    for _ in 0..<100 { await served.next() }
                    await server.stop(patience: .seconds(20))
                    try await group.waitForAll()
                }
            }
        }
    }

    @Test func aStoppedServerStaysStoppedAndItsPortIsFree() async throws {
        var configuration = HTTPServerConfiguration()
        // An address of its own: on the others' a test beside this one may be given the port that has become free.
        configuration.host = "127.0.0.9"
        let handler = ClosureHandler(answer: echo)
        let server = HTTPServer(configuration: configuration, handler: handler)
        await server.stop(patience: .zero)
        configuration.port = try server.start().port
        #expect(throws: HTTPServerError.self) { try server.start() }
        await server.stop(patience: .zero)
        await server.stop(patience: .zero)
        await server.stopAccepting()
        let second = HTTPServer(configuration: configuration, handler: handler)
        #expect(try second.start().port == configuration.port)
        await second.stop(patience: .zero)
    }

    @Test func reportsWhyItDoesNotStart() async throws {
        try await TestServer(answer: echo).run { _, port in
            func failure(_ change: (inout HTTPServerConfiguration) -> Void) -> HTTPServerError? {
                var configuration = HTTPServerConfiguration()
                change(&configuration)
                let server = HTTPServer(configuration: configuration, handler: ClosureHandler(answer: echo))
                return #expect(throws: HTTPServerError.self) { try server.start() }
            }
            guard case .addressInUse(_, port)? = failure({ $0.port = port }) else {
                Issue.record("a port that is taken")
                return
            }
            guard case .unknownHost? = failure({ $0.host = "192.0.2.1" }) else {
                Issue.record("an address of another machine")
                return
            }
            guard case .invalidConfiguration(key: "threads", _)? = failure({ $0.threads = 0 }) else {
                Issue.record("no threads")
                return
            }
            let missing = HTTPTLSFiles(certificate: "/nonexistent.pem", key: "/nonexistent.pem")
            guard case .unreadableFile(path: "/nonexistent.pem", code: ENOENT)? = failure({ $0.tls = missing }) else {
                Issue.record("a certificate that is not there")
                return
            }
        }
    }
}
