import FanOutLink
import Gateway
import SyncModel
import TestClocks
import TestSignals
import Testing

@Suite(.timeLimit(.minutes(5))) struct LongPollTests {
    /// Sends a long poll and waits until it waits.
    private func poll(_ gateway: TestGateway, seconds: String = "30", until time: Duration = .seconds(30)) async throws
        -> HTTPClient
    {
        let client = try HTTPClient(port: gateway.port)
        try await client.send(
            "POST", "/v1/pull", headers: TestGateway.headers("abc", "xyz:read"),
            body: Array(#"{"knowledgeId":"k1","wait":\#(seconds)}"#.utf8))
        _ = await gateway.link.subscriptions.next()
        await gateway.clock.sleeper(until: time)
        return client
    }

    @Test func respondsAtOnceIfThereAreNewRows() async throws {
        try await withGateway { gateway in
            gateway.link.set(.rows([#"{"id":"a"}"#], [(.k1, 5)], head: 5), of: .abc)
            let answer = try await gateway.exchange("POST", "/v1/pull", #"{"knowledgeId":"k1","wait":30}"#)
            #expect(answer.text.contains(#""changes":[{"id":"a"}]"#))
            let revoked = try await gateway.exchange(
                "POST", "/v1/pull", as: "q", #"{"knowledgeId":"k1","wait":30,"knowledge":[\#(entry("k1", 1))]}"#)
            #expect(revoked.text.contains(#""revoked":["abc"]"#))
            let other = try await gateway.exchange(
                "POST", "/v1/pull", as: "q",
                #"{"knowledgeId":"k1","epoch":"x","wait":30,"knowledge":[\#(entry("k1", 1, "q"))]}"#)
            #expect(other.text.contains(#""resync":[{"syncId":"q","#))
        }
    }

    @Test func wakesWhenAnOwnerMoves() async throws {
        try await withGateway { gateway in
            let client = try await poll(gateway)
            gateway.link.move(.xyz, to: 9, rows: .rows([#"{"id":"x"}"#], [(.k2, 9)], head: 9))
            let answer = try await client.answer()
            #expect(answer.text.contains(#""changes":[{"id":"x"}],"knowledge":[\#(entry("k2", 9, "xyz"))]"#))
            #expect(await gateway.link.cancellations.next() == 0)
        }
    }

    @Test func waitsOnAfterAMoveWithoutRowsForTheDevice() async throws {
        try await withGateway { gateway in
            let client = try await poll(gateway)
            gateway.link.setIdle(false)
            gateway.link.move(.abc, to: 9)
            _ = await gateway.link.pullsAsked.next()
            gateway.link.move(.abc, to: 10, rows: .rows([#"{"id":"a"}"#], [(.k2, 10)], head: 10))
            #expect(try await client.answer().text.contains(#""changes":[{"id":"a"}]"#))
        }
    }

    @Test func longPollRespondsWhenItsTimeIsOver() async throws {
        try await withGateway { gateway in
            let client = try await poll(gateway)
            gateway.clock.advance(by: .seconds(30))
            let answer = try await client.answer()
            #expect(answer.status == 200)
            #expect(answer.text.hasSuffix(#""changes":[],"knowledge":[],"# + nothingMore))
        }
    }

    @Test(arguments: [("50", 50_000), ("51", 50_000), ("1e9", 50_000), ("0.25", 250)])
    func waitsFiftySecondsAtMost(seconds: String, milliseconds: Int) async throws {
        try await withGateway { gateway in
            let client = try await poll(gateway, seconds: seconds, until: .milliseconds(milliseconds))
            gateway.clock.advance(by: .milliseconds(milliseconds))
            #expect(try await client.answer().status == 200)
        }
    }

    @Test func doesNotWaitWithoutWait() async throws {
        try await withGateway { gateway in
            let answer = try await gateway.exchange("POST", "/v1/pull", #"{"knowledgeId":"k1","wait":0}"#)
            #expect(answer.status == 200)
            #expect(gateway.link.subscriberCount == 0)
        }
    }

    @Test func longPollRespondsWhenTheGatewayStops() async throws {
        try await withGateway { gateway in
            let clients = [try await poll(gateway), try await poll(gateway)]
            async let stopped: Void = gateway.service.stop()
            for client in clients {
                let answer = try await client.answer()
                #expect(answer.status == 200)
                #expect(answer["connection"] == "close")
                #expect(answer.text.hasSuffix(#""changes":[],"knowledge":[],"# + nothingMore))
            }
            await stopped
        }
    }

    @Test func longPollEndsWhenItsClientDisconnects() async throws {
        try await withGateway { gateway in
            let client = try await poll(gateway)
            client.leave()
            #expect(await gateway.link.cancellations.next() == 0)
        }
    }

    @Test func longPollEndsWhenTheStreamCannotBeRead() async throws {
        try await withGateway { gateway in
            let client = try await poll(gateway)
            gateway.link.setIdle(false)
            gateway.link.failPulls(.notReady("the stream is being built"))
            gateway.link.move(.abc, to: 9)
            #expect(try await client.answer().status == 503)
        }
    }
}
