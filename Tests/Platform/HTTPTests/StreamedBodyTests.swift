import HTTP
import Synchronization
import TestSignals
import Testing

/// Bodies that a handler reads while they arrive.
@Suite(.timeLimit(.minutes(5))) struct StreamedBodyTests {
    private static let head = "POST / HTTP/1.1\r\nHost: a\r\n"

    /// What a handler saw of a body.
    private final class Reading: Sendable {
        let started = Signal<Void>()
        let goOn = Signal<Void>()
        let ended = Signal<HTTPBodyPieces.Failure?>()
        let pieces = Mutex<[Int]>([])
    }

    /// Streams bodies to a handler that reads to the end, counts and hashes.
    private func server(
        limit: Int = 1 << 30, _ configure: @escaping (inout HTTPServerConfiguration) -> Void = { _ in },
        waiting: Bool = false, into reading: Reading = Reading()
    ) -> TestServer {
        let answer: @Sendable (HTTPRequest) -> HTTPHandlerResult = { request in
            guard let pieces = request.bodyPieces else { return .response(text("none")) }
            return .task {
                reading.started.send()
                if waiting { await reading.goOn.next() }
                var (count, sum) = (0, 0)
                do throws(HTTPBodyPieces.Failure) {
                    while let piece = try await pieces.next() {
                        reading.pieces.withLock { $0.append(piece.count) }
                        for byte in piece {
                            count += 1
                            sum = (sum &* 31 &+ Int(byte)) % 1_000_003
                        }
                    }
                    reading.ended.send(nil)
                } catch {
                    reading.ended.send(error)
                }
                return text("\(count) \(sum)")
            }
        }
        return TestServer(configure, bodyPolicy: { _ in .stream(upTo: limit) }, answer: answer)
    }

    private static func expected(_ bytes: [UInt8]) -> String {
        "\(bytes.count) \(bytes.reduce(0) { ($0 &* 31 &+ Int($1)) % 1_000_003 })"
    }

    private static func bytes(_ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 9) }
    }

    @Test func theBytesComeInOrderAndTheConnectionServesFurtherRequests() async throws {
        try await server().run { server, port in
            let client = try await RawClient(port: port)
            for count in [1, 100, 3 << 20] {
                let body = Self.bytes(count)
                try await client.send(Self.head + "Content-Length: \(count)\r\n\r\n")
                try await client.send(body)
                let answer = try await client.answer()
                #expect(answer.status == 200)
                #expect(answer.text == Self.expected(body))
            }
            try await client.send(Self.head + "Content-Length: 0\r\n\r\n")
            #expect(try await client.answer().text == "none")
        }
    }

    @Test func chunkedBodiesComeInOrder() async throws {
        try await server().run { _, port in
            let client = try await RawClient(port: port, sending: Self.head + "Transfer-Encoding: chunked\r\n\r\n")
            let body = Self.bytes(700_000)
            var rest = body[...]
            for size in [1, 5000, 300_000, 394_999] {
                try await client.send(String(size, radix: 16) + "\r\n")
                try await client.send(Array(rest.prefix(size)) + Array("\r\n".utf8))
                rest = rest.dropFirst(size)
            }
            try await client.send("0\r\n\r\n")
            #expect(try await client.answer().text == Self.expected(body))
        }
    }

    @Test func theHandlerReadsBeforeTheEndHasArrived() async throws {
        let reading = Reading()
        try await server(into: reading).run { _, port in
            let client = try await RawClient(port: port, sending: Self.head + "Content-Length: 6\r\n\r\nabc")
            await reading.started.next()
            // Else the test ends by its time limit.
            while reading.pieces.withLock({ $0.reduce(0, +) }) < 3 { await Task.yield() }
            try await client.send("def")
            #expect(try await client.answer().text == Self.expected(Array("abcdef".utf8)))
        }
    }

    /// The client cannot send what neither the buffer nor the sockets have room for.
    @Test func aClientWaitsWhileTheHandlerDoesNotRead() async throws {
        let reading = Reading()
        let count = 24 << 20
        try await server(waiting: true, into: reading).run { server, port in
            let client = try await RawClient(port: port, sending: Self.head + "Content-Length: \(count)\r\n\r\n")
            await reading.started.next()
            let sent = Atomic(false)
            async let sending: Void = {
                try await client.send([UInt8](repeating: 7, count: count))
                sent.store(true, ordering: .relaxed)
            }()
            // Another connection is served meanwhile, by the same threads.
            for _ in 0..<200 {
                let other = try await RawClient(port: port, sending: Self.head + "Content-Length: 0\r\n\r\n")
                #expect(try await other.answer().text == "none")
            }
            let isSent = sent.load(ordering: .relaxed)
            #expect(!isSent)
            #expect(server.counters.bytesInFlight == 768 << 10)
            reading.goOn.send()
            try await sending
            #expect(try await client.answer().text == Self.expected([UInt8](repeating: 7, count: count)))
            #expect(reading.pieces.withLock { $0.max() ?? 0 } <= HTTPBodyPieces.capacity)
            #expect(server.counters.bytesInFlight == 0)
        }
    }

    @Test(arguments: ["Content-Length: 1001\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n3e9\r\n"])
    func answers413ToABodyAboveItsOwnLimit(framing: String) async throws {
        let reading = Reading()
        try await server(limit: 1000, { $0.maxBodyBytes = 10 }, into: reading).run { server, port in
            let allowed = try await RawClient(port: port, sending: Self.head + "Content-Length: 1000\r\n\r\n")
            let body = Self.bytes(1000)
            try await allowed.send(body)
            #expect(try await allowed.answer().text == Self.expected(body))
            #expect(await reading.ended.next() == nil)
            let client = try await RawClient(port: port, sending: Self.head + framing)
            try await client.send(Self.bytes(1001))
            #expect(try await client.answer().status == 413)
            if framing.hasPrefix("T") { #expect(await reading.ended.next() == .brokenOff) }
        }
    }

    @Test func answers415ToAnEncodedBody() async throws {
        try await server().run { _, port in
            let client = try await RawClient(
                port: port, sending: Self.head + "Content-Encoding: gzip\r\nContent-Length: 9\r\n\r\n123456789")
            let answer = try await client.answer()
            #expect(answer.status == 415)
            #expect(answer.headers["accept-encoding"] == "identity")
        }
    }

    @Test func theHandlerHearsOfAClientThatGoesAway() async throws {
        let reading = Reading()
        try await server(into: reading).run { server, port in
            let client = try await RawClient(port: port, sending: Self.head + "Content-Length: 1000\r\n\r\nabc")
            await reading.started.next()
            try await client.reset()
            let failure = await reading.ended.next()
            #expect(failure == .brokenOff || failure == .cancelled)
        }
    }

    @Test func aClientThatGoesAwayWhileItIsPausedLeavesNothingBehind() async throws {
        let reading = Reading()
        try await server(waiting: true, into: reading).run { server, port in
            let client = try await RawClient(port: port, sending: Self.head + "Content-Length: 1000000\r\n\r\n")
            await reading.started.next()
            try await client.send(Self.bytes(600_000))
            try await client.reset()
            reading.goOn.send()
            let failure = await reading.ended.next()
            #expect(failure == .brokenOff || failure == .cancelled)
        }
    }

    @Test func answers408ToAClientBelowTheLeastRate() async throws {
        let reading = Reading()
        try await server(
            {
                $0.requestTimeout = .milliseconds(1000)
                $0.leastSendRate = 1000
            }, into: reading
        ).run { server, port in
            let client = try await RawClient(port: port, sending: Self.head + "Content-Length: 1000000\r\n\r\n")
            try await client.trickle("x", everyMilliseconds: 20)
            #expect(try await client.answer().status == 408)
            #expect(await reading.ended.next() == .brokenOff)
        }
    }

    /// Longer than `requestTimeout`, whose end a silent connection shows.
    @Test func aClientAboveTheLeastRateMayTakeLong() async throws {
        try await server({
            $0.requestTimeout = .seconds(1)
            $0.leastSendRate = 1000
        }).run { _, port in
            let body = Self.bytes(400_000)
            let client = try await RawClient(port: port, sending: Self.head + "Content-Length: \(body.count)\r\n\r\n")
            try await client.send(Array(body.prefix(200_000)))
            for _ in 0..<2 {
                let silent = try await RawClient(port: port)
                #expect(try await silent.rest() == "")
            }
            try await client.send(Array(body.dropFirst(200_000)))
            #expect(try await client.answer().text == Self.expected(body))
        }
    }

    @Test func aHandlerMayRespondBeforeTheEnd() async throws {
        try await TestServer(bodyPolicy: { _ in .stream(upTo: 1 << 30) }) { request in
            guard let pieces = request.bodyPieces else { return .response(text("none")) }
            if request.rawPath == "/at-once" { return .response(text("no")) }
            return .task {
                if request.rawPath == "/first" { _ = try? await pieces.next() }
                return text("enough")
            }
        }.run { _, port in
            for (path, expected) in [("/at-once", "no"), ("/none", "enough"), ("/first", "enough")] {
                let client = try await RawClient(
                    port: port, sending: "POST \(path) HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\nabc")
                let answer = try await client.answer()
                #expect(answer.status == 200)
                #expect(answer.text == expected)
                #expect(try await client.rest() == "")
            }
        }
    }

    @Test func aStopEndsBodiesThatArrive() async throws {
        let reading = Reading()
        try await server(waiting: true, into: reading).run { server, port in
            let paused = try await RawClient(port: port, sending: Self.head + "Content-Length: 1000000\r\n\r\n")
            await reading.started.next()
            try await paused.send(Self.bytes(600_000))
            await server.stop(patience: .zero)
            reading.goOn.send()
            let failure = await reading.ended.next()
            #expect(failure == .brokenOff || failure == .cancelled)
        }
    }

    @Test func bodiesCountAgainstTheBytesInFlight() async throws {
        let reading = Reading()
        try await server({ $0.maxBytesInFlight = 900 << 10 }, waiting: true, into: reading).run { _, port in
            let first = try await RawClient(port: port, sending: Self.head + "Content-Length: 1000000\r\n\r\n")
            await reading.started.next()
            let second = try await RawClient(port: port, sending: Self.head + "Content-Length: 1000000\r\n\r\n")
            #expect(try await second.answer().status == 503)
            reading.goOn.send()
            try await first.send(Self.bytes(1_000_000))
            #expect(try await first.answer().text == Self.expected(Self.bytes(1_000_000)))
        }
    }
}
