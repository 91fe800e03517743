import FanOutLink
import Gateway
import SyncModel
import TestClocks
import TestSignals
import Testing

@Suite(.timeLimit(.minutes(5))) struct WatchTests {
    /// Opens an event stream and reads its head.
    private func watch(_ gateway: TestGateway, as caller: String = "abc", links: String? = "xyz:read") async throws
        -> HTTPClient
    {
        let client = try HTTPClient(port: gateway.port)
        try await client.send("GET", "/v1/watch", headers: TestGateway.headers(caller, links))
        let head = try await client.head()
        #expect(head.status == 200)
        #expect(head["content-type"] == "text/event-stream")
        #expect(head["cache-control"] == "no-store")
        return client
    }

    private func event(_ owner: String, _ head: Int64) -> String {
        "event: head\ndata: {\"syncId\":\"\(owner)\",\"head\":\(head)}\n\n"
    }

    @Test func sendsTheHeadOfEveryOwnerAndThenEveryMove() async throws {
        try await withGateway { gateway in
            gateway.link.set(.rows(head: 103), of: .abc)
            let client = try await watch(gateway)
            #expect(try await client.chunks(until: event("xyz", 0)) == event("abc", 103) + event("xyz", 0))
            gateway.link.move(.xyz, to: 7)
            #expect(try await client.chunks(until: event("xyz", 7)) == event("xyz", 7))
            gateway.link.move(SyncID(unchecked: "other"), to: 8)
            gateway.link.move(.abc, to: 104)
            #expect(try await client.chunks(until: event("abc", 104)) == event("abc", 104))
        }
    }

    @Test func sendsKeepAlivesFromOneTimer() async throws {
        try await withGateway {
            $0.configuration.keepAlive = .seconds(5)
        } test: { gateway in
            let clients = [try await watch(gateway, links: nil), try await watch(gateway, links: nil)]
            for client in clients { _ = try await client.chunks(until: event("abc", 0)) }
            for tick in 1...3 {
                await gateway.clock.sleeper(until: .seconds(5 * tick))
                gateway.clock.advance(by: .seconds(5))
                for client in clients { #expect(try await client.chunks(until: "\n\n") == ":\n\n") }
            }
        }
    }

    @Test func keepsTheNewestHeadForASlowReader() async throws {
        try await withGateway { gateway in
            let (client, moves) = try await outrun(gateway)
            let all = try await client.chunks(until: "\"head\":\(moves)}\n\n")
            let heads = all.split(separator: "\n\n").compactMap {
                $0.split(separator: "\"head\":").last.flatMap { Int64($0.dropLast()) }
            }
            // Never backwards, and fewer than there were: what waited was one head for each owner.
            #expect(heads == heads.sorted())
            #expect(heads.count < moves)
            #expect(all.hasSuffix("\"head\":\(moves)}\n\n"))
            gateway.link.move(Self.large, to: Int64(moves) + 1)
            #expect(try await client.chunks(until: "\n\n").hasSuffix("\"head\":\(moves + 1)}\n\n"))
        }
    }

    /// An owner whose events are large: each byte of its id takes six in JSON.
    private static let large = SyncID(unchecked: String(repeating: "\u{1}", count: 255))

    /// Moves an owner much faster than its watcher, who reads nothing, is sent it.
    private func outrun(_ gateway: TestGateway) async throws -> (HTTPClient, moves: Int) {
        let client = try HTTPClient(port: gateway.port, receiveBuffer: 64 << 10)
        let caller = String(repeating: "%01", count: 255)
        try await client.send("GET", "/v1/watch", headers: TestGateway.headers(caller))
        #expect(try await client.head().status == 200)
        _ = try await client.chunks(until: "\"head\":0}\n\n")
        // Events of 1.5 KB, of which the stream's buffer holds two.
        let moves = 3000
        for head in 1...moves { gateway.link.move(Self.large, to: Int64(head)) }
        return (client, moves)
    }

    @Test func endsEventStreamsWhenTheGatewayStops() async throws {
        try await withGateway { gateway in
            let client = try await watch(gateway, links: nil)
            _ = try await client.chunks(until: event("abc", 0))
            #expect(gateway.service.counters.watchers == 1)
            async let stopped: Void = gateway.service.stop()
            let rest = try await client.restOfChunks()
            #expect(rest.text.isEmpty)
            #expect(rest.isComplete)
            await stopped
        }
    }

    @Test func eventStreamEndsWhenTheTokenExpires() async throws {
        try await withGateway { gateway in
            // Its token holds for 20 s.
            let brief = try await watch(gateway, as: "brief", links: nil)
            let other = try await watch(gateway, links: nil)
            for tick in 1...2 {
                await gateway.clock.sleeper(until: .seconds(15 * tick))
                gateway.clock.advance(by: .seconds(15))
                _ = try await other.chunks(until: ":\n\n")
            }
            let rest = try await brief.restOfChunks()
            #expect(rest.isComplete)
            #expect(rest.text == event("brief", 0) + ":\n\n")
        }
    }

    @Test func removesAClientThatDisconnects() async throws {
        try await withGateway { gateway in
            let client = try await watch(gateway, links: nil)
            _ = try await client.chunks(until: event("abc", 0))
            client.leave()
            #expect(await gateway.link.cancellations.next() == 0)
            #expect(gateway.service.counters.watchers == 0)
        }
    }

    @Test func isNotReadyIfAHeadIsNotKnown() async throws {
        try await withGateway { gateway in
            gateway.link.failHeads(.notReady("the stream is being built"))
            let answer = try await gateway.exchange("GET", "/v1/watch")
            #expect(answer.status == 503)
            #expect(answer.text.contains(#""code":"not_ready","detail":"the stream is being built""#))
            #expect(gateway.service.counters.watchers == 0)
            #expect(gateway.link.subscriberCount == 0)
        }
    }
}
