import Dispatch
import HTTP
import TestSignals
import Testing

/// Large bodies are handled on other threads than those of the connections.
@Suite(.timeLimit(.minutes(5))) struct LargeBodyTests {
    private static let large = 100_000

    /// A client that has sent a large body.
    private func client(port: UInt16) async throws -> RawClient {
        let client = try await RawClient(port: port)
        try await client.send(
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \(Self.large)\r\n\r\n"
                + String(repeating: "x", count: Self.large))
        return client
    }

    /// With one thread for all connections.
    @Test func aLargeBodyDelaysNoOtherConnection() async throws {
        let started = Signal<Void>()
        let released = DispatchSemaphore(value: 0)
        try await TestServer({ $0.threads = 1 }) { request in
            if request.body.count > 0 {
                started.send()
                released.wait()
            }
            return .response(text("\(request.body.count)"))
        }.run { _, port in
            let large = try await client(port: port)
            await started.next()
            let small = try await RawClient(port: port)
            try await small.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(try await small.answer().text == "0")
            released.signal()
            #expect(try await large.answer().text == "\(Self.large)")
            // On the same connection.
            try await large.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(try await large.answer().text == "0")
        }
    }

    @Test func aLargeBodyIsReleasedBeforeItsResponseIsReady() async throws {
        let started = Signal<Void>()
        let gate = Signal<Void>()
        try await TestServer { request in
            let count = request.body.count
            return .task {
                started.send()
                await gate.next()
                return text("\(count)")
            }
        }.run { server, port in
            let client = try await client(port: port)
            await started.next()
            // Else the test ends by its time limit.
            while server.counters.bytesInFlight > 0 { await Task.yield() }
            gate.send()
            #expect(try await client.answer().text == "\(Self.large)")
        }
    }

    @Test func aClientThatDisconnectsWhileItsBodyIsHandledLeavesNothingBehind() async throws {
        let started = Signal<Void>()
        let released = DispatchSemaphore(value: 0)
        try await TestServer { request in
            started.send()
            released.wait()
            return .response(text("\(request.body.count)"))
        }.run { _, port in
            let client = try await client(port: port)
            await started.next()
            try await client.reset()
            released.signal()
        }
    }
}
