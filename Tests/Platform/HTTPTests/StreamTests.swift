import Dispatch
import HTTP
import Synchronization
import TestSignals
import Testing

@Suite(.timeLimit(.minutes(5))) struct StreamTests {
    /// Runs a server that answers every request with a stream and tells of it.
    private func withStreams(
        capacity: Int = 64 << 10, ended: Signal<HTTPBodyStream.End> = Signal(),
        test: (Signal<HTTPBodyStream>, HTTPServer, UInt16) async throws -> Void
    ) async throws {
        let streams = Signal<HTTPBodyStream>()
        try await TestServer(answer: { _ in
            let stream = HTTPBodyStream(capacity: capacity, onEnd: { ended.send($0) })
            streams.send(stream)
            return .response(
                HTTPResponse(status: 200, headers: [HTTPField("Content-Type", "text/event-stream")], stream: stream))
        }).run { server, port in
            try await test(streams, server, port)
        }
    }

    @Test func aReaderWithoutAConnectionGetsWhatIsWrittenAndTheEnd() async {
        let ended = Signal<HTTPBodyStream.End>()
        let stream = HTTPBodyStream(capacity: 4, onEnd: { ended.send($0) })
        let pieces = Task {
            var pieces: [HTTPBodyStream.Piece] = []
            while true {
                pieces.append(await stream.read())
                if case .end = pieces.last { return pieces }
            }
        }
        // The buffer holds one of them.
        for byte: UInt8 in 1...3 { #expect(await stream.send([byte, byte, byte])) }
        #expect(await stream.drain())
        stream.finish()
        #expect(await pieces.value == [.bytes([1, 1, 1]), .bytes([2, 2, 2]), .bytes([3, 3, 3]), .end(.complete)])
        stream.close()
        #expect(await ended.next() == .complete)
    }

    @Test func aReaderWithoutAConnectionThatIsCancelledOrAbortedGetsABrokenEnd() async {
        let stream = HTTPBodyStream()
        let first = Signal<HTTPBodyStream.Piece>()
        let reader = Task {
            first.send(await stream.read())
            return await stream.read()
        }
        stream.write([1])
        #expect(await first.next() == .bytes([1]))
        // Most of the times it waits by then.
        for _ in 0..<100 { await Task.yield() }
        reader.cancel()
        #expect(await reader.value == .end(.broken))
        stream.close()
        #expect(stream.write([1]) == .ended)
        let aborted = HTTPBodyStream()
        let other = Task { await aborted.read() }
        aborted.abort()
        #expect(await other.value == .end(.broken))
    }

    /// Neither may wait for the other: who cancels a task has it locked, and who resumes it waits for that.
    @Test func aReaderMayBeCancelledWhileItIsWrittenTo() async {
        let (writing, cancelling) = (DispatchQueue(label: "writing"), DispatchQueue(label: "cancelling"))
        for _ in 0..<2000 {
            let stream = HTTPBodyStream()
            let ended = Signal<HTTPBodyStream.Piece>()
            let reader = Task {
                var piece = await stream.read()
                while case .bytes = piece { piece = await stream.read() }
                ended.send(piece)
            }
            writing.async { for byte: UInt8 in 0..<20 { stream.write([byte]) } }
            cancelling.async { reader.cancel() }
            #expect(await ended.next() == .end(.broken))
            stream.close()
        }
    }

    @Test func sendsTheHeadAtOnceAndEveryPieceWhenItIsWritten() async throws {
        let ended = Signal<HTTPBodyStream.End>()
        try await withStreams(ended: ended) { streams, _, port in
            let client = try await RawClient(port: port)
            try await client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(try await client.head() == 200)
            let stream = await streams.next()
            for number in 0..<100 {
                #expect(stream.write(Array("data: \(number)\n\n".utf8)) == .accepted)
                #expect(try await client.chunk() == "data: \(number)\n\n")
            }
            stream.finish()
            #expect(try await client.chunk() == "")
            #expect(await ended.next() == .complete)
            #expect(stream.write([1]) == .ended)
            try await client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(try await client.head() == 200)
        }
    }

    @Test func sendsToHTTP10WithoutChunks() async throws {
        try await withStreams { streams, _, port in
            let client = try await RawClient(port: port)
            try await client.send("GET / HTTP/1.0\r\n\r\n")
            let stream = await streams.next()
            let body = (0..<2000).map { UInt8($0 % 10 + 48) }
            stream.write(body)
            stream.finish()
            let all = try await client.rest()
            #expect(all.hasSuffix("\r\n\r\n" + String(decoding: body, as: UTF8.self)))
        }
    }

    @Test func aWriterWaitsForASlowReader() async throws {
        try await withStreams(capacity: 10_000) { streams, _, port in
            let client = try await RawClient(port: port, receiveBuffer: 4096)
            try await client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(try await client.head() == 200)
            let stream = await streams.next()
            let piece = [UInt8](repeating: 120, count: 1000)
            // Beyond what the sockets of both sides hold by default.
            let total = 20_000
            let isFull = Signal<Void>()
            let writer = Task {
                var wasFull = false
                for _ in 0..<total {
                    if stream.write(piece) == .full {
                        if !wasFull { isFull.send() }
                        wasFull = true
                        guard await stream.send(piece) else { return false }
                    }
                }
                stream.finish()
                return true
            }
            await isFull.next()
            var count = 0
            while case let chunk = try await client.chunk(), !chunk.isEmpty { count += chunk.utf8.count }
            #expect(count == total * piece.count)
            #expect(await writer.value)
        }
    }

    @Test func acceptsAPieceLargerThanItsCapacityOnlyWhenTheBufferIsEmpty() async throws {
        let stream = HTTPBodyStream(capacity: 10)
        #expect(stream.write([UInt8](repeating: 1, count: 100)) == .accepted)
        #expect(stream.write([1]) == .full)
        stream.abort()
        #expect(stream.write([1]) == .ended)
    }

    @Test func aWaitingWriterIsResumedByTheEndAndByCancellation() async throws {
        let stream = HTTPBodyStream(capacity: 1)
        #expect(await stream.send([1]))
        let cancelled = Task { await stream.send([2]) }
        cancelled.cancel()
        #expect(await cancelled.value == false)
        let ended = Task { await stream.send([3]) }
        stream.abort()
        #expect(await ended.value == false)
    }

    @Test(arguments: [false, true])
    func detectsTheDisconnectOfAClient(byReset: Bool) async throws {
        let ended = Signal<HTTPBodyStream.End>()
        try await withStreams(ended: ended) { streams, _, port in
            let client = try await RawClient(port: port)
            try await client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(try await client.head() == 200)
            let stream = await streams.next()
            if byReset {
                try await client.reset()
            } else {
                try await client.finishSending()
            }
            #expect(await ended.next() == .broken)
            #expect(stream.write([1]) == .ended)
            #expect(stream.hasEnded)
        }
    }

    @Test func detectsTheDisconnectOfAClientThatDoesNotRead() async throws {
        let ended = Signal<HTTPBodyStream.End>()
        try await withStreams(capacity: 1 << 20, ended: ended) { streams, _, port in
            let client = try await RawClient(port: port, receiveBuffer: 4096)
            try await client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(try await client.head() == 200)
            let stream = await streams.next()
            while stream.write([UInt8](repeating: 0, count: 100_000)) == .accepted {}
            try await client.finishSending()
            #expect(await ended.next() == .broken)
        }
    }

    @Test func anAbortedStreamBreaksTheResponseOff() async throws {
        try await withStreams { streams, _, port in
            let client = try await RawClient(port: port)
            try await client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(try await client.head() == 200)
            let stream = await streams.next()
            stream.write(Array("x".utf8))
            #expect(try await client.chunk() == "x")
            stream.abort()
            #expect(try await client.rest() == "")
        }
    }

    @Test func manyStreamsAreWrittenAndEndedByTheirProducer() async throws {
        try await withStreams { streams, server, port in
            var clients: [RawClient] = []
            var open: [HTTPBodyStream] = []
            for _ in 0..<200 {
                let client = try await RawClient(port: port)
                try await client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                #expect(try await client.head() == 200)
                clients.append(client)
                open.append(await streams.next())
            }
            #expect(server.counters.requestsUnderWay == 200)
            for stream in open { stream.write(Array("wake".utf8)) }
            for client in clients { #expect(try await client.chunk() == "wake") }
            for stream in open { stream.finish() }
            for client in clients { #expect(try await client.chunk() == "") }
        }
    }

    @Test func concurrentWritersLoseNothing() async throws {
        try await withStreams(capacity: 500) { streams, _, port in
            let client = try await RawClient(port: port)
            try await client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(try await client.head() == 200)
            let stream = await streams.next()
            let writers = Task {
                await withTaskGroup(of: Void.self) { group in
                    for writer in 0..<8 {
                        group.addTask {
                            for _ in 0..<500 { #expect(await stream.send([UInt8(65 + writer), 10])) }
                        }
                    }
                }
                stream.finish()
            }
            var counts: [Character: Int] = [:]
            while case let chunk = try await client.chunk(), !chunk.isEmpty {
                for letter in chunk where letter != "\n" { counts[letter, default: 0] += 1 }
            }
            await writers.value
            #expect(counts.count == 8 && counts.values.allSatisfy { $0 == 500 })
        }
    }
}
