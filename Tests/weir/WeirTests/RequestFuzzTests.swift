import Foundation
import Fuzzing
import Testing

/// Any bytes at the port get no answer or one without a server error, and other clients are served.
@Suite struct RequestFuzzTests {
    private static let head = "Host: localhost\r\nX-Sync-Id: fuzz\r\nConnection: close\r\n"

    private static let corpus: [[UInt8]] = {
        let sync =
            #"{"knowledgeId":"k1","batch":1,"changes":[{"table":"person","id":"p1","values":{"name":"A"}}],"knowledge":[{"#
            + #""syncId":"fuzz","knowledgeId":"k1","lastTimeStamp":0}],"limit":10}"#
        return [
            post("/v1/sync", sync), post("/v1/upload", sync), post("/v1/pull", #"{"knowledgeId":"k1","compact":true}"#),
            "GET /v1/schema HTTP/1.1\r\n\(head)\r\n", "GET /v1/batches/1?knowledgeId=k1 HTTP/1.1\r\n\(head)\r\n",
            "HEAD /openapi.json HTTP/1.1\r\n\(head)\r\n", "OPTIONS * HTTP/1.1\r\n\(head)\r\n",
            "GET /docs/errors.md HTTP/1.0\r\n\r\n",
            "POST /v1/sync HTTP/1.1\r\n\(head)Transfer-Encoding: chunked\r\n\r\n"
                + "12\r\n{\"knowledgeId\":\"k1\r\n2\r\n\"}\r\n0\r\n\r\n",
        ].map { Array($0.utf8) }
    }()

    private static func post(_ path: String, _ body: String) -> String {
        "POST \(path) HTTP/1.1\r\n\(head)Content-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
    }

    private static let words = [
        "\r\n", "\r\n\r\n", "\n", "\r", "Content-Length: ", "Transfer-Encoding: chunked", "Content-Encoding: gzip",
        "Expect: 100-continue", "HTTP/1.1", "HTTP/2.0", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET ", "%00", "%", "?",
        "/",
        "Host: ", ": ", "\u{0}", "\u{7F}", "99999999999999999999", "-1", "0\r\n\r\n", "X-Sync-Links: ",
        "Prefer: wait=1",
        "\"\\ud800\"", "[[[[[[[[", "{", "}", "Connection: Upgrade", "é",
    ]

    @Test func anyBytesAreAnsweredOrDroppedAndOthersAreServed() async throws {
        let weir = try await TestServer.start(settings: [
            "gateway.request-timeout": "2s", "gateway.idle-timeout": "2s",
        ])
        let port = weir.port
        var bystander = HealthyDevice(weir)
        let fuzzer = Fuzzer(
            "HTTP", count: TestLength.count(480, short: 240, long: 8000), corpus: Self.corpus, words: Self.words)
        let statuses = try await bystander.watch {
            try await RawConnection.onThread {
                var open = OpenRequests()
                _ = try fuzzer.run { bytes in
                    try open.send(bytes, port: port)
                    return .accepted
                }
                try open.finish()
                return open.statuses
            }
        }
        #expect(statuses[200, default: 0] > 10 && statuses[400, default: 0] > 10, "\(statuses)")
        try await bystander.check(weir)
        #expect(await weir.stop() == 0)
    }
}

/// Requests under way at the same time, so that those that the server waits for do not add up.
private struct OpenRequests {
    private static let limit = 240

    private var requests: [(connection: RawConnection, input: [UInt8])] = []
    /// How many answers of each status there were.
    private(set) var statuses: [Int: Int] = [:]

    mutating func send(_ bytes: [UInt8], port: UInt16) throws {
        let connection = try RawConnection(port: port)
        connection.send(bytes)
        requests.append((connection, bytes))
        if requests.count == Self.limit { try finish() }
    }

    /// Reads every answer up to the end of its connection.
    mutating func finish() throws {
        for (connection, input) in requests {
            let answer = String(decoding: try connection.rest(), as: UTF8.self)
            guard !answer.isEmpty else { continue }
            let status = answer.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
            guard answer.hasPrefix("HTTP/1."), (100..<500).contains(status) || [503, 504, 505].contains(status) else {
                throw Fuzzer.BrokenPromise(
                    "answered \(answer.prefix(200)) to \(Data(input).base64EncodedString()) (base64)")
            }
            statuses[status, default: 0] += 1
        }
        requests = []
    }
}
