import Foundation
import Seeded
import Testing
import WeirClient

@Suite(.timeLimit(.minutes(2))) struct ServerTests {
    private static let url = URL(string: "https://example.org/weir")!

    /// A closure for tokens that returns t1, t2 and so on.
    private static func tokens() -> Credentials {
        let count = Counter()
        return .token { "t\(count.next())" }
    }

    // MARK: Failures

    @Test(arguments: [
        (302, SyncError.Kind.unreadable), (400, .rejected), (401, .unauthenticated), (403, .forbidden),
        (404, .rejected),
        (405, .rejected), (408, .unavailable), (413, .rejected), (415, .rejected), (422, .rejected),
        (429, .unavailable), (500, .unavailable), (502, .unavailable), (503, .unavailable), (504, .unavailable),
    ]) func theStatusSaysWhatFollows(status: Int, kind: SyncError.Kind) async throws {
        let transport = ScriptedTransport { _, _ in .problem(status, "some_code") }
        let server = Server(url: Self.url, credentials: Self.tokens(), transport: transport)
        let caller = try await server.caller()
        let error = await #expect(throws: SyncError.self) { try await server.send("GET", "v1/schema", as: caller) }
        #expect(error?.kind == kind)
        #expect(error?.status == status)
        #expect(error?.code == "some_code")
        #expect(error?.message == "d")
    }

    @Test func aProblemThatIsCutLeavesTheStatus() async throws {
        for type in ["application/problem+json", "text/html"] {
            let transport = ScriptedTransport { _, _ in
                TransportResponse(status: 503, headers: ["content-type": type], body: Array(#"{"code":"over"#.utf8))
            }
            let server = Server(url: Self.url, credentials: Self.tokens(), transport: transport)
            let caller = try await server.caller()
            let error = await #expect(throws: SyncError.self) { try await server.send("GET", "v1/x", as: caller) }
            #expect(error?.kind == .unavailable)
            #expect(error?.code == nil)
            #expect(error?.message == "HTTP status 503")
        }
    }

    @Test(
        arguments: [
            ("7", 7.0), (" 0 ", 0), ("99999999", 3600), ("-5", 0), ("soon", nil), ("Thu, 01 Jan 1970 00:02:00 GMT", 20),
            ("Thu, 01 Jan 1970 00:00:20 GMT", 0),
        ] as [(String, TimeInterval?)]) func readsRetryAfter(text: String, seconds: TimeInterval?)
    {
        let response = TransportResponse.problem(503, "overloaded", retryAfter: text)
        #expect(SyncError(response, now: Date(timeIntervalSince1970: 100))?.retryAfter == seconds)
    }

    @Test func whatGetsNoResponseWasUnreachableAndACancelledRequestIsNoFailure() async throws {
        let transport = ScriptedTransport { _, number in
            if number == 0 { throw ScriptedTransport.Lost() }
            withUnsafeCurrentTask { $0?.cancel() }
            throw URLError(.cancelled)
        }
        let server = Server(url: Self.url, credentials: Self.tokens(), transport: transport)
        let caller = try await server.caller()
        let error = await #expect(throws: SyncError.self) { try await server.send("GET", "v1/x", as: caller) }
        #expect(error?.kind == .unreachable)
        let task = Task { _ = try await server.send("GET", "v1/x", as: caller) }
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    // MARK: Callers

    @Test func aTokenIsUsedUntilItIsRejectedAndThenRenewed() async throws {
        let transport = ScriptedTransport { request, _ in
            request.headers["authorization"] == "Bearer t1" ? .problem(401, "unauthenticated") : .json("{}")
        }
        let server = Server(url: Self.url, credentials: Self.tokens(), transport: transport)
        let first = try await server.caller()
        let same = try await server.caller()
        #expect(!first.isVerified)
        await server.verify(first)
        #expect(try await server.caller().isVerified)
        for caller in [first, same] {
            let error = await #expect(throws: SyncError.self) { try await server.send("GET", "v1/x", as: caller) }
            #expect(error?.kind == .unauthenticated)
        }
        // Rejected twice, renewed once; the new token may be of another account.
        let second = try await server.caller()
        #expect(!second.isVerified)
        _ = try await server.send("POST", "v1/sync", body: [1], as: second)
        // A late rejection of the old token leaves the new one.
        await #expect(throws: SyncError.self) { try await server.send("GET", "v1/x", as: first) }
        _ = try await server.send("GET", "v1/x?a=b", as: try await server.caller())
        let used = transport.requests.map { $0.headers["authorization"] }
        #expect(used == ["t1", "t1", "t2", "t1", "t2"].map { "Bearer \($0)" })
        #expect(transport.requests[2].url.absoluteString == "https://example.org/weir/v1/sync")
        #expect(transport.requests[2].headers["content-type"] == "application/json")
        #expect(transport.requests[4].url.absoluteString == "https://example.org/weir/v1/x?a=b")
    }

    @Test func requestsThatNeedATokenAtTheSameTimeWaitForOne() async throws {
        let count = Counter()
        let gate = AsyncStream.makeStream(of: Void.self)
        let server = Server(
            url: Self.url,
            credentials: .token {
                let number = count.next()
                for await _ in gate.stream { break }
                return "t\(number)"
            }, transport: ScriptedTransport { _, _ in .json("{}") })
        await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<5 { group.addTask { _ = try await server.caller() } }
            gate.continuation.finish()
        }
        #expect(count.next() == 2)
    }

    @Test func anAppWithoutATokenIsAskedAgain() async throws {
        let count = Counter()
        let server = Server(
            url: Self.url,
            credentials: .token {
                if count.next() == 1 { throw ScriptedTransport.Lost() }
                return "t"
            }, transport: ScriptedTransport { _, _ in .json("{}") })
        let error = await #expect(throws: SyncError.self) { try await server.caller() }
        #expect(error?.kind == .noToken)
        _ = try await server.caller()
    }

    @Test func withoutAuthenticationTheHeadersNameTheAccount() async throws {
        let transport = ScriptedTransport { _, _ in .json("{}") }
        let server = Server(
            url: Self.url, credentials: .unauthenticated(syncID: "a b,ü", links: ["x:y": .write, "b": .read]),
            transport: transport)
        let caller = try await server.caller()
        #expect(caller.isVerified)
        _ = try await server.send("GET", "v1/schema", as: caller)
        #expect(transport.requests[0].headers == ["x-sync-id": "a%20b%2C%C3%BC", "x-sync-links": "b:read,x%3Ay:write"])
    }

    @Test func anEventStreamThatIsRefusedFailsLikeARequest() async throws {
        let transport = ScriptedTransport { _, number in
            number == 0 ? .problem(401, "unauthenticated") : number == 1 ? .json("", status: 204) : .json(":\n")
        }
        let server = Server(url: Self.url, credentials: Self.tokens(), transport: transport)
        for kind in [SyncError.Kind.unauthenticated, .unreadable] {
            let caller = try await server.caller()
            let error = await #expect(throws: SyncError.self) {
                _ = try await server.open("v1/watch", timeout: 45, as: caller)
            }
            #expect(error?.kind == kind)
        }
        let caller = try await server.caller()
        var text: [UInt8] = []
        for try await piece in try await server.open("v1/watch", timeout: 45, as: caller).pieces { text += piece }
        #expect(text == Array(":\n".utf8))
        #expect(transport.requests[2].headers["authorization"] == "Bearer t2")
        #expect(transport.requests[2].timeout == 45)
    }

    // MARK: Pauses

    @Test func pausesGrowWithFullJitterAndRespectRetryAfter() {
        let lost = SyncError(.unreachable, "lost")
        var sums = [Double](repeating: 0, count: 12)
        for seed in 0..<400 {
            var backoff = Backoff(random: SeededRandom(seed: UInt64(seed)))
            for index in sums.indices {
                let pause = backoff.pause(after: lost)
                let bound = min(Duration.seconds(300), .seconds(1 << index))
                #expect(pause >= .zero && pause < bound)
                sums[index] += pause / bound
            }
            backoff.reset()
            #expect(backoff.pause(after: lost) < .seconds(1))
        }
        // Spread over the whole interval, not around its end.
        for sum in sums { #expect((160...240).contains(sum)) }
        var backoff = Backoff(random: SeededRandom(seed: 1))
        let busy = SyncError(.problem(503, "overloaded", retryAfter: "30"), now: Date())
        let pause = backoff.pause(after: busy!)
        #expect(pause >= .seconds(30) && pause < .seconds(31))
        // What somebody has to mend is tried at a slower pace.
        backoff.reset()
        let forbidden = (0..<200).map { _ in
            backoff.reset()
            return backoff.pause(after: SyncError(.forbidden, "no"))
        }
        #expect(forbidden.contains { $0 > .seconds(180) } && forbidden.allSatisfy { $0 < .seconds(225) })
    }
}
