import Dispatch
import HTTP
import TestSignals
import Testing
import ThreadExecutor

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

    /// A few kilobytes of gzip may be megabytes, which take as long as large bodies.
    @Test func whatOfGzipIsLargeIsDecompressedInTurnsAsWell() async throws {
        let started = Signal<Void>()
        let released = DispatchSemaphore(value: 0)
        // As many as there are threads for large bodies.
        let count = max(1, DedicatedThread.processors / 2)
        try await TestServer({
            $0.threads = 1
            $0.maxBodyBytes = Self.large
        }) { request in
            if request.segments == ["hold"] {
                started.send()
                released.wait()
            }
            return .response(text("\(request.body.count)"))
        }.run { server, port in
            func send(_ body: [UInt8], to path: String, _ header: String = "") async throws -> RawClient {
                let client = try await RawClient(port: port)
                try await client.send(
                    "POST /\(path) HTTP/1.1\r\nHost: a\r\n\(header)Content-Length: \(body.count)\r\n\r\n")
                try await client.send(body)
                return client
            }
            let gzipHeader = "Content-Encoding: gzip\r\n"
            var holding: [RawClient] = []
            for _ in 0..<count {
                holding.append(try await send([UInt8](repeating: 1, count: Self.large), to: "hold"))
                await started.next()
            }
            let bomb = try await send(gzip([UInt8](repeating: 0, count: 100 * Self.large)), to: "", gzipHeader)
            let fitting = try await send(gzip([UInt8](repeating: 0, count: Self.large)), to: "", gzipHeader)
            let small = try await send(gzip([1, 2, 3]), to: "", gzipHeader)
            #expect(try await small.answer().text == "3")
            // One thread serves all of them, in the order in which they came.
            #expect(try await !bomb.hasInput)
            for _ in holding { released.signal() }
            #expect(try await bomb.answer().status == 413)
            #expect(try await fitting.answer().text == "\(Self.large)")
            for client in holding { #expect(try await client.answer().text == "\(Self.large)") }
            await server.stop(patience: .seconds(20))
            #expect(server.counters.bytesInFlight == 0)
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
