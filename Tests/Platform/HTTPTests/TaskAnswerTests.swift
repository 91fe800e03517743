import HTTP
import TestSignals
import Testing

@Suite(.timeLimit(.minutes(5))) struct TaskAnswerTests {
    @Test func servesManyConnectionsInAnyOrderOfTasks() async throws {
        let started = Signal<Int>()
        let gates = (0..<50).map { _ in Signal<Void>() }
        try await TestServer(answer: { request in
            let number = Int(request.segments[0])!
            return .task {
                started.send(number)
                await gates[number].next()
                return text("\(number)")
            }
        }).run { _, port in
            var clients: [RawClient] = []
            for number in gates.indices {
                clients.append(try await RawClient(port: port))
                try await clients[number].send("GET /\(number) HTTP/1.1\r\nHost: a\r\n\r\n")
            }
            for _ in gates { _ = await started.next() }
            for number in gates.indices.reversed() {
                gates[number].send()
                #expect(try await clients[number].answer().text == "\(number)")
            }
        }
    }

    @Test(arguments: [false, true])
    func cancelsTheTaskOfAClientThatDisconnects(byReset: Bool) async throws {
        let started = Signal<Void>()
        let cancelled = Signal<Void>()
        try await TestServer(answer: { _ in
            .task {
                started.send()
                let gate = Signal<Void>()
                await withTaskCancellationHandler {
                    await gate.next()
                } onCancel: {
                    gate.send()
                }
                cancelled.send()
                return text("too late")
            }
        }).run { _, port in
            let client = try await RawClient(port: port)
            try await client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            await started.next()
            if byReset {
                try await client.reset()
                await cancelled.next()
            } else {
                // Its receiving side is open: it still gets what the task returns.
                try await client.finishSending()
                await cancelled.next()
                #expect(try await client.answer().text == "too late")
            }
        }
    }

    @Test func dropsTheResponseForAClientThatHasDisconnected() async throws {
        let started = Signal<Void>()
        let gate = Signal<Void>()
        let returned = Signal<Void>()
        try await TestServer(answer: { request in
            guard request.segments == ["stubborn"] else { return echo(request) }
            return .task {
                started.send()
                await gate.next()
                returned.send()
                return HTTPResponse(status: 200, body: [UInt8](repeating: 0, count: 1 << 20))
            }
        }).run { _, port in
            for _ in 0..<20 {
                let client = try await RawClient(port: port)
                try await client.send("GET /stubborn HTTP/1.1\r\nHost: a\r\n\r\n")
                await started.next()
                try await client.reset()
                gate.send()
                await returned.next()
            }
            let other = try await RawClient(port: port)
            try await other.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(try await other.answer().status == 200)
        }
    }

    @Test func dropsTheResponseOfATaskAfterTheStop() async throws {
        let started = Signal<Void>()
        let gate = Signal<Void>()
        let ended = Signal<HTTPBodyStream.End>()
        try await TestServer(answer: { _ in
            .task {
                started.send()
                await gate.next()
                return HTTPResponse(status: 200, stream: HTTPBodyStream(onEnd: { ended.send($0) }))
            }
        }).run { server, port in
            let client = try await RawClient(port: port)
            try await client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            await started.next()
            await server.stop(patience: .zero)
            #expect(try await client.rest() == "")
            gate.send()
            #expect(await ended.next() == .broken)
        }
    }

    @Test func servesManyTasksOnManyConnections() async throws {
        try await TestServer(answer: { request in
            .task {
                for _ in 0..<(request.body.bytes.first.map { Int($0) % 4 } ?? 0) { await Task.yield() }
                return HTTPResponse(status: 200, body: request.body.bytes)
            }
        }).run { server, port in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<50 {
                    group.addTask {
                        let client = try await RawClient(port: port)
                        for round in 0..<40 {
                            let body: [UInt8] = [UInt8(number), UInt8(round)]
                            try await client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n")
                            try await client.send(body)
                            #expect(try await client.answer().body == body)
                        }
                    }
                }
                try await group.waitForAll()
            }
            #expect(server.counters.requests == 2000)
        }
    }
}
