import FanOutLink
import Gateway
import Metrics
import SyncModel
import TestClocks
import Testing

/// What pulls take of the limits of rates.
extension RateLimitTests {
    /// Rows that are more than a small response has.
    private static let largeRows = OwnerRows.rows(
        [#"{"id":"\#(String(repeating: "a", count: 100_000))"}"#], [(.k1, 5)], head: 5, hasMore: true)

    @Test(arguments: ["/v1/pull", "/v1/sync"])
    func whatADevicePullsCountsOnceItIsRead(route: String) async throws {
        try await withGateway {
            $0.configuration.deviceRates = Rates(pulledBytes: 10_000)
            $0.metrics = registry
        } test: { gateway in
            func pull(_ device: String = "k1") async throws -> HTTPClient.Answer {
                try await gateway.exchange("POST", route, #"{"knowledgeId":"\#(device)"}"#)
            }
            gateway.link.set(Self.largeRows, of: .abc)
            #expect(try await pull().body.count > 100_000)
            let refused = try await pull()
            #expect(refused.status == 429)
            #expect(refused["retry-after"] == "1")
            #expect(refused["ratelimit-policy"] == #""device-pulled-bytes";q=100000;w=10;qu="content-bytes""#)
            #expect(refused["ratelimit"] == #""device-pulled-bytes";r=0;t=1"#)
            #expect(refused.text.contains(#""detail":"this device may pull 10000 bytes per second""#))
            #expect(try await pull("k2").status == 200)
            #expect(try await gateway.exchange("POST", "/v1/upload", body(changes: 1)).status == 202)
            gateway.clock.advance(by: .seconds(1))
            #expect(try await pull().status == 200)
        }
        #expect(refused("device-pulled-bytes") == 1)
    }

    @Test func smallPagesDoNotCount() async throws {
        try await withGateway {
            $0.configuration.callerRates = Rates(pulledBytes: 100)
        } test: { gateway in
            gateway.link.set(.rows([#"{"id":"a"}"#], [(.k1, 5)], head: 5, hasMore: true), of: .abc)
            for _ in 0..<10 {
                let status = try await gateway.exchange("POST", "/v1/pull", body()).status
                #expect(status == 200)
            }
        }
    }

    /// It is durable, and would be applied again if it was sent again.
    @Test func anUploadWithoutANumberIsNotRefusedForWhatOthersPull() async throws {
        try await withGateway {
            $0.configuration.callerRates = Rates(pulledBytes: 100)
        } test: { gateway in
            gateway.link.set(.results([(0, .applied(6), nil)], summary: BatchSummary(changeCount: 1)), ofPart: 0)
            gateway.link.set(Self.largeRows, of: .abc)
            gateway.link.holdOutcomes()
            async let sync = gateway.exchange("POST", "/v1/sync", body(changes: 1))
            while try gateway.batches.isEmpty { await Task.yield() }
            #expect(try await gateway.exchange("POST", "/v1/pull", body("k2")).status == 200)
            gateway.link.releaseOutcomes()
            #expect(try await sync.status == 504)
        }
    }
}
