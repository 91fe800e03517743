import CZlib
import FanOutLink
import Gateway
import Metrics
import SyncModel
import TestClocks
import Testing

/// Compresses as a client would.
private func gzip(_ bytes: [UInt8]) -> [UInt8] {
    var stream = z_stream()
    CZlib_start_gzip(&stream, 9)
    defer { deflateEnd(&stream) }
    var input = bytes
    var output = [UInt8](repeating: 0, count: Int(deflateBound(&stream, UInt(bytes.count))))
    // Both arrays stay where they are while zlib works on them.
    input.withUnsafeMutableBufferPointer { input in
        output.withUnsafeMutableBufferPointer { output in
            stream.next_in = input.baseAddress
            stream.avail_in = UInt32(input.count)
            stream.next_out = output.baseAddress
            stream.avail_out = UInt32(output.count)
            deflate(&stream, Z_FINISH)
        }
    }
    return Array(output[..<Int(stream.total_out)])
}

/// Requests beyond a rate are refused with 429, through HTTP and on a clock that the test advances.
@Suite(.timeLimit(.minutes(5))) struct RateLimitTests {
    let registry = MetricRegistry()

    func refused(_ limit: String) -> Int { registry.counter(.gatewayRateLimited, [.limit: limit]).value }

    func body(_ device: String = "k1", changes: Int = 0, padding: Int = 0) -> String {
        let changes = Array(repeating: "0", count: changes).joined(separator: ",")
        return #"{"knowledgeId":"\#(device)","changes":[\#(changes)],"x":"\#(String(repeating: "x", count: padding))"}"#
    }

    @Test func refusesChangesBeyondTheRateOfACaller() async throws {
        try await withGateway {
            $0.configuration.callerRates = Rates(changes: 2)
            $0.metrics = registry
        } test: { gateway in
            func send(_ count: Int, as caller: String = "abc") async throws -> HTTPClient.Answer {
                try await gateway.exchange("POST", "/v1/upload", as: caller, body(changes: count))
            }
            // Ten seconds' worth at once, then no more; others are not held.
            #expect(try await send(20).status == 202)
            let refused = try await send(5)
            #expect(refused.status == 429)
            #expect(refused["retry-after"] == "3")
            #expect(refused["ratelimit-policy"] == #""caller-changes";q=20;w=10;qu="changes""#)
            #expect(refused["ratelimit"] == #""caller-changes";r=0;t=3"#)
            #expect(
                refused.text.contains(#""code":"rate_limited","detail":"this caller may send 2 changes per second""#))
            #expect(try await send(20, as: "xyz").status == 202)
            gateway.clock.advance(by: .milliseconds(2400))
            #expect(try await send(5).status == 429)
            gateway.clock.advance(by: .milliseconds(100))
            #expect(try await send(5).status == 202)
            // A batch larger than all that may be saved up goes through when nothing was taken before it, and is paid
            // for after.
            gateway.clock.advance(by: .seconds(10))
            #expect(try await send(40).status == 202)
            gateway.clock.advance(by: .seconds(10))
            #expect(try await send(1).status == 429)
            gateway.clock.advance(by: .milliseconds(500))
            #expect(try await send(1).status == 202)
        }
        #expect(refused("caller-changes") == 3)
        #expect(refused("device-changes") == 0)
    }

    @Test(arguments: ["/v1/sync", "/v1/upload"])
    func refusesWhatExceedsTheRatesOfADevice(route: String) async throws {
        try await withGateway {
            $0.configuration.deviceRates = Rates(requests: 1, changes: 3, bytes: 100)
            $0.metrics = registry
        } test: { gateway in
            func send(_ body: String, as caller: String = "abc") async throws -> Int {
                gateway.link.failOutcomes(.pending)
                return try await gateway.exchange("POST", route, as: caller, body).status
            }
            let first = try await send(body(changes: 31))
            #expect(first != 429)
            #expect(try await send(body(changes: 1)) == 429)
            // Another device of the caller, and a device of that name of another caller.
            #expect(try await send(body("k2", changes: 1)) != 429)
            #expect(try await send(body(changes: 1), as: "xyz") != 429)
            #expect(try await send(body("k3", changes: 1, padding: 2000)) != 429)
            #expect(try await send(body("k3", changes: 1)) == 429)
            gateway.clock.advance(by: .seconds(11))
            #expect(try await send(body(changes: 1)) != 429)
        }
        #expect(refused("device-changes") == 1)
        #expect(refused("device-bytes") == 1)
    }

    @Test func countsTheDecompressedBytes() async throws {
        try await withGateway {
            $0.configuration.callerRates = Rates(bytes: 10_000)
        } test: { gateway in
            let client = try HTTPClient(port: gateway.port)
            let text = body(changes: 1, padding: 80_000)
            let packed = gzip(Array(text.utf8))
            #expect(packed.count < 2000)
            for status in [202, 429] {
                try await client.send(
                    "POST", "/v1/upload", headers: TestGateway.headers() + ["Content-Encoding: gzip"], body: packed)
                #expect(try await client.answer().status == status)
            }
        }
    }

    /// The partition's newest upload has touched rows of so many bytes.
    private func touch(_ bytes: Int, _ offset: Int64, of backlog: UploadBacklog, by device: String = "k1") {
        let progress = UploadProgress(offset: offset, part: 0)
        let partition = Partitioning(count: 4).partition(of: .abc)
        backlog.passed(
            StreamReport(
                partition: partition, uploads: [partition: progress],
                largeParts: [
                    StreamReport.LargePart(
                        source: partition, progress: progress,
                        device: Device(caller: .abc, knowledgeID: KnowledgeID(unchecked: device)),
                        touchedBytes: bytes)
                ]))
    }

    /// A gateway whose devices may send or touch 1000 bytes a second, with reports of streams by the test.
    private func withStreams(test: (TestGateway, UploadBacklog) async throws -> Void) async throws {
        let backlog = UploadBacklog(partitions: 4, maximumLag: .seconds(60))
        try await withGateway {
            $0.backlog = backlog
            $0.configuration.deviceRates = Rates(bytes: 1000)
            $0.metrics = registry
        } test: {
            try await test($0, backlog)
        }
    }

    @Test func countsTheRowsThatChangesTouched() async throws {
        try await withStreams { gateway, backlog in
            func send(_ device: String = "k1") async throws -> HTTPClient.Answer {
                try await gateway.exchange("POST", "/v1/upload", body(device, changes: 1))
            }
            #expect(try await send().status == 202)
            // Whichever gateway accepted the upload, and once, however many fan-outs report it.
            touch(15_500, 7, of: backlog)
            for _ in 1...3 { touch(15_500, 7, of: backlog) }
            let refused = try await send()
            #expect(refused.status == 429)
            #expect(refused["retry-after"] == "6")
            #expect(try await send("k2").status == 202)
            #expect(try await gateway.exchange("POST", "/v1/pull", body()).status == 200)
            gateway.clock.advance(by: .seconds(6))
            #expect(try await send().status == 202)
        }
        #expect(refused("device-bytes") == 1)
    }

    /// Many are accepted before the first of them is known to have touched much.
    @Test func anUploadThatHasWaitedIsRefusedWhereOthersHaveTakenItsBytes() async throws {
        try await withStreams { gateway, backlog in
            func send(_ device: String = "k1") async throws -> Int {
                try await gateway.exchange("POST", "/v1/upload", body(device, changes: 1)).status
            }
            // As many as may wait for the stream at first.
            for _ in 1...4 {
                let status = try await send()
                #expect(status == 202)
            }
            async let first = send()
            async let other = send("k2")
            await gateway.clock.sleepers(2, for: .seconds(5))
            touch(20_000, 3, of: backlog)
            let statuses = try await (first, other)
            #expect(statuses == (429, 202))
            #expect(gateway.log.records.count == 5)
        }
    }

    @Test func bodiesThatAreRefusedCount() async throws {
        try await withGateway {
            $0.configuration.callerRates = Rates(bytes: 100)
            $0.metrics = registry
        } test: { gateway in
            let wrong = body(changes: 1, padding: 2000).dropLast()
            for _ in 1...2 { #expect(try await gateway.exchange("POST", "/v1/upload", String(wrong)).status == 400) }
            #expect(try await gateway.exchange("POST", "/v1/upload", body(changes: 1)).status == 429)
            #expect(try await gateway.exchange("POST", "/v1/pull", body()).status == 200)
            // What may be large is not even read.
            let client = try HTTPClient(port: gateway.port)
            try await client.send(
                Array(
                    ("POST /v1/sync HTTP/1.1\r\nHost: localhost\r\nX-Sync-Id: abc\r\nContent-Length: 65537\r\n"
                        + "\r\n{").utf8))
            #expect(try await client.answer().status == 429)
            // A small body may be a pull, which costs no bytes.
            #expect(try await gateway.exchange("POST", "/v1/sync", #"{"knowledgeId":"k1"}"#).status == 200)
        }
        #expect(refused("caller-bytes") == 2)
    }

    /// Refused changes of a byte count, too, since the log keeps why each was refused; vectors do not.
    @Test(arguments: ["/v1/sync", "/v1/upload"])
    func refusesWhatWouldTakeMoreOfTheLogThanADayAllows(route: String) async throws {
        try await withGateway {
            $0.configuration.callerRates = Rates(dailyBytes: 10_000)
            $0.metrics = registry
        } test: { gateway in
            func send(_ changes: Int, as caller: String = "abc") async throws -> HTTPClient.Answer {
                gateway.link.failOutcomes(.pending)
                return try await gateway.exchange(
                    "POST", route, as: caller, body(changes: changes, padding: 20_000))
            }
            // 512, the name, the brackets, and 66 for each change with its comma: 7116, and 4476.
            #expect(try await send(100).status != 429)
            let refused = try await send(60)
            #expect(refused.status == 429)
            #expect(refused["ratelimit-policy"] == #""caller-daily-bytes";q=10000;w=86400;qu="content-bytes""#)
            #expect(refused["ratelimit"] == #""caller-daily-bytes";r=2884;t=\#(refused["retry-after"] ?? "")"#)
            #expect(refused.text.contains("this caller may send 10000 bytes of changes a day"))
            #expect(try await send(60, as: "xyz").status != 429)
            #expect(try await gateway.exchange("POST", "/v1/pull", body()).status == 200)
            let wait = try #require(refused["retry-after"].flatMap { Int($0) })
            #expect(wait == 13_755)
            gateway.clock.advance(by: .seconds(wait - 1))
            #expect(try await send(60).status == 429)
            gateway.clock.advance(by: .seconds(1))
            #expect(try await send(60).status != 429)
        }
        #expect(refused("caller-daily-bytes") == 2)
    }

    @Test func everyAuthenticatedRequestCounts() async throws {
        try await withGateway {
            $0.configuration.callerRates = Rates(requests: 1)
            $0.configuration.deviceRates = Rates(requests: 1)
            $0.metrics = registry
        } test: { gateway in
            let requests: [(String, String, String?, [Int])] = [
                ("GET", "/v1/schema", nil, [200]), ("HEAD", "/v1/schema", nil, [200]),
                ("GET", "/v1/batches/1?knowledgeId=k1", nil, [404]), ("GET", "/v1/batches/x", nil, [422]),
                ("POST", "/v1/upload", body(changes: 1), [202]), ("POST", "/v1/upload", "{", [400]),
                ("POST", "/v1/pull", "{}", [422]), ("HEAD", "/v1/watch", nil, [200]),
            ]
            for (method, path, text, statuses) in requests {
                let answer = try await gateway.exchange(method, path, text)
                #expect(statuses.contains(answer.status), "\(method) \(path)")
                #expect(answer["ratelimit"] != nil, "\(method) \(path)")
            }
            let wrongType = try await gateway.exchange("POST", "/v1/pull", headers: ["Content-Type: text/plain"], "{}")
            #expect(wrongType.status == 415)
            let last = try await gateway.exchange("GET", "/v1/schema")
            #expect(last.status == 200)
            #expect(last["ratelimit"] == #""caller-requests";r=0;t=10"#)
            for (method, path, text, _) in requests {
                let refused = try await gateway.exchange(method, path, text)
                #expect(refused.status == 429, "\(method) \(path)")
                #expect(refused["retry-after"] == "1")
                #expect(refused["ratelimit"] == #""caller-requests";r=0;t=1"#)
            }
            // Not of this caller: documents, other callers, and requests without one.
            #expect(try await gateway.exchange("GET", "/openapi.json").status == 200)
            #expect(try await gateway.exchange("GET", "/v1/schema", as: nil).status == 401)
            #expect(try await gateway.exchange("GET", "/v1/schema", as: "xyz").status == 200)
            gateway.clock.advance(by: .seconds(1))
            #expect(try await gateway.exchange("GET", "/v1/schema").status == 200)
            #expect(try await gateway.exchange("GET", "/v1/schema").status == 429)
        }
        #expect(refused("caller-requests") == 9)
    }

    @Test func refusesBeforeTheBodyIsRead() async throws {
        try await withGateway {
            $0.configuration.callerRates = Rates(requests: 1)
        } test: { gateway in
            for _ in 1...10 { _ = try await gateway.exchange("GET", "/v1/schema") }
            let client = try HTTPClient(port: gateway.port)
            try await client.send(
                Array(
                    ("POST /v1/upload HTTP/1.1\r\nHost: localhost\r\nX-Sync-Id: abc\r\nContent-Length: 1000000\r\n"
                        + "\r\n{").utf8))
            let answer = try await client.answer()
            #expect(answer.status == 429)
            #expect(answer["retry-after"] == "1")
        }
    }

    @Test(arguments: ["/v1/upload", "/v1/schema"])
    func refusalsAreHeldBack(path: String) async throws {
        try await withGateway {
            // A caller's uploads are refused before their bodies are read, and their connections closed.
            $0.configuration.callerRates = Rates(requests: path == "/v1/schema" ? 1 : 0)
            $0.configuration.deviceRates = Rates(requests: 1)
            $0.configuration.refusalDelay = .seconds(1)
            $0.configuration.maxWaiting = 4
        } test: { gateway in
            func send() async throws -> Int {
                path == "/v1/schema"
                    ? try await gateway.exchange("GET", path).status
                    : try await gateway.exchange("POST", path, body(changes: 1)).status
            }
            for _ in 1...10 {
                let status = try await send()
                #expect(status < 300)
            }
            // While others wait, too, of half of those that may.
            let held = (1...2).map { _ in Task { try await send() } }
            while gateway.service.counters.waiting < 2 { await Task.yield() }
            await gateway.clock.sleepers(2, for: .seconds(1))
            #expect(try await send() == 429)
            #expect(gateway.service.counters.waiting == 2)
            gateway.clock.advance(by: .seconds(1))
            for task in held {
                let status = try await task.value
                #expect(status == 429)
            }
        }
    }

    @Test func successfulAnswersNameThePolicies() async throws {
        try await withGateway { _ in
        } test: { gateway in
            let upload = try await gateway.exchange("POST", "/v1/upload", body(changes: 1))
            #expect(upload["ratelimit-policy"] == nil)
            #expect(upload["ratelimit"] == nil)
        }
        try await withGateway {
            $0.configuration.deviceRates = Rates(requests: 5, bytes: 1000)
        } test: { gateway in
            let upload = try await gateway.exchange("POST", "/v1/upload", body(changes: 1))
            #expect(upload.status == 202)
            #expect(
                upload["ratelimit-policy"]
                    == #""device-requests";q=50;w=10, "device-bytes";q=10000;w=10;qu="content-bytes""#)
            #expect(upload["ratelimit"] == #""device-requests";r=49;t=1"#)
            let batch = try await gateway.exchange("GET", "/v1/batches/1?knowledgeId=k2")
            #expect(batch["ratelimit-policy"] == #""device-requests";q=50;w=10"#)
            #expect(try await gateway.exchange("GET", "/v1/schema")["ratelimit"] == nil)
        }
    }
}
