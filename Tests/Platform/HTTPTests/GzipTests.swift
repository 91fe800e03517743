import CZlib
import HTTP
import Testing

/// Compresses as a client would.
func gzip(_ bytes: [UInt8]) -> [UInt8] {
    var stream = z_stream()
    CZlib_start_gzip(&stream, 9)
    var input = bytes
    var output = [UInt8](repeating: 0, count: Int(deflateBound(&stream, UInt(bytes.count))))
    input.withUnsafeMutableBufferPointer { input in
        output.withUnsafeMutableBufferPointer { output in
            stream.next_in = input.baseAddress
            stream.avail_in = UInt32(input.count)
            stream.next_out = output.baseAddress
            stream.avail_out = UInt32(output.count)
            deflate(&stream, Z_FINISH)
        }
    }
    deflateEnd(&stream)
    return Array(output[..<Int(stream.total_out)])
}

/// Decompresses as a client would; `nil` when it is no gzip.
private func gunzip(_ bytes: [UInt8], count: Int) -> [UInt8]? {
    var stream = z_stream()
    CZlib_start_gunzip(&stream)
    var input = bytes
    var output = [UInt8](repeating: 0, count: count)
    let code = input.withUnsafeMutableBufferPointer { input in
        output.withUnsafeMutableBufferPointer { output in
            stream.next_in = input.baseAddress
            stream.avail_in = UInt32(input.count)
            stream.next_out = output.baseAddress
            stream.avail_out = UInt32(output.count)
            return inflate(&stream, Z_FINISH)
        }
    }
    inflateEnd(&stream)
    return code == Z_STREAM_END ? output : nil
}

@Suite(.timeLimit(.minutes(5))) struct GzipTests {
    static let sample = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 / 7 ^ $0 / 1001) }

    private func post(_ body: [UInt8], encoding: String, to port: UInt16) async throws -> RawClient.Answer {
        let client = try await RawClient(port: port)
        try await client.send(
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Encoding: \(encoding)\r\nContent-Length: \(body.count)\r\n\r\n")
        try await client.send(body)
        return try await client.answer()
    }

    @Test func decompressesABody() async throws {
        let zeros = [UInt8](repeating: 0, count: 100_000)
        let empty = Array(repeatElement(gzip([]), count: 20_000).joined())
        try await TestServer(answer: echo).run { server, port in
            for (sent, encoding, body) in [
                (gzip(zeros) + empty + gzip([1]), "gzip", zeros + [1]),
                (gzip(Self.sample), "gzip", Self.sample), (gzip(Self.sample), "X-GZIP", Self.sample),
                (gzip([]), "gzip", []), (gzip([1]) + gzip([2, 3]), "gzip", [1, 2, 3]), ([1, 2], "identity", [1, 2]),
            ] {
                let answer = try await post(sent, encoding: encoding, to: port)
                #expect(answer.body == body)
            }
            await server.stop(patience: .seconds(20))
            #expect(server.counters.bytesInFlight == 0)
        }
    }

    @Test func decompressesABodyThatArrivesByteByByte() async throws {
        try await TestServer(answer: echo).run { _, port in
            let client = try await RawClient(port: port)
            try await client.send(
                "POST / HTTP/1.1\r\nHost: a\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n")
            for byte in gzip(Array("piecemeal".utf8)) { try await client.send(Array("1\r\n".utf8) + [byte, 13, 10]) }
            try await client.send("0\r\n\r\n")
            #expect(try await client.answer().text == "piecemeal")
        }
    }

    @Test func limitsTheSizeAfterDecompression() async throws {
        try await TestServer({ $0.maxBodyBytes = 100_000 }, answer: echo).run { server, port in
            let bomb = gzip([UInt8](repeating: 0, count: 50_000_000))
            #expect(bomb.count < 60_000)
            let atLimit = [UInt8](repeating: 0, count: 100_000)
            let isCut = Array(gzip(atLimit).dropLast())
            for (sent, status) in [(bomb, 413), (gzip(atLimit), 200), (gzip(atLimit + [0]), 413), (isCut, 400)] {
                let answer = try await post(sent, encoding: "gzip", to: port)
                #expect(answer.status == status)
            }
            await server.stop(patience: .seconds(20))
            #expect(server.counters.bytesInFlight == 0)
        }
    }

    @Test func refusesInvalidGzip() async throws {
        try await TestServer(answer: echo).run { _, port in
            let good = gzip(Self.sample)
            var wrongSum = good
            wrongSum[good.count - 6] ^= 1
            for bad in [Array("plain text".utf8), Array(good.dropLast()), Array(good[..<20]), wrongSum, good + [0, 1]] {
                let answer = try await post(bad, encoding: "gzip", to: port)
                #expect(answer.status == 400)
            }
        }
    }

    @Test(arguments: ["br", "gzip, gzip", "deflate", ""])
    func refusesOtherEncodings(encoding: String) async throws {
        try await TestServer(answer: echo).run { _, port in
            let answer = try await post([1], encoding: encoding, to: port)
            #expect(answer.status == 415)
            #expect(answer.headers["accept-encoding"] == "gzip")
        }
    }

    @Test(arguments: [
        ("gzip", true), ("GZIP;q=0.001", true), ("deflate, x-gzip", true), ("*", true), ("*;q=0, gzip", true),
        ("gzip;q=0", false), ("gzip; Q = 0.000, *", false), ("identity", false), ("", false), ("*;q=0", false),
    ])
    func compressesForClientsThatTakeIt(header: String, isCompressed: Bool) async throws {
        try await TestServer(answer: { _ in
            .response(HTTPResponse(status: 200, body: Self.sample, isCompressible: true))
        }).run { _, port in
            let client = try await RawClient(port: port)
            try await client.send("GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: \(header)\r\n\r\n")
            let answer = try await client.answer()
            #expect(answer.headers["vary"] == "Accept-Encoding")
            #expect(answer.headers["content-encoding"] == (isCompressed ? "gzip" : nil))
            #expect((isCompressed ? gunzip(answer.body, count: Self.sample.count) : answer.body) == Self.sample)
        }
    }

    @Test(arguments: [2000, 30_000], [false, true])
    func compressesInlineOrInATask(size: Int, isTask: Bool) async throws {
        let body = Array(Self.sample[..<size])
        try await TestServer(answer: { _ in
            let response = HTTPResponse(status: 200, body: body, isCompressible: true)
            return isTask ? .task { response } : .response(response)
        }).run { _, port in
            let client = try await RawClient(port: port)
            try await client.send("GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n")
            let answer = try await client.answer()
            #expect(gunzip(answer.body, count: size) == body)
            try await client.send("HEAD / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n")
            let head = try await client.answer(toHead: true)
            #expect(head.headers["content-length"] == "\(answer.body.count)")
            #expect(head.headers["content-encoding"] == "gzip")
        }
    }

    @Test func doesNotCompressSmallOrIncompressibleResponses() async throws {
        try await TestServer(answer: { request in
            switch request.segments.first {
            case "small": .response(HTTPResponse(status: 200, body: [1, 1, 1], isCompressible: true))
            case "encoded":
                .response(
                    HTTPResponse(
                        status: 200, headers: [HTTPField("content-encoding", "br")], body: Self.sample,
                        isCompressible: true))
            default: .response(HTTPResponse(status: 200, body: Self.sample))
            }
        }).run { _, port in
            let client = try await RawClient(port: port)
            for (path, encoding) in [("small", nil), ("encoded", "br"), ("secret", nil)] {
                try await client.send("GET /\(path) HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n")
                let answer = try await client.answer()
                #expect(answer.headers["content-encoding"] == encoding)
                #expect(answer.body == (path == "small" ? [1, 1, 1] : Self.sample))
            }
        }
    }
}
