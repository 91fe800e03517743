import FanOutLink
import Gateway
import Metrics
import SyncModel
import TestClocks
import TestSignals
import Testing

/// What pulls take of the limits of rates.
extension RateLimitTests {
    /// Rows that are more than a small response has.
    private static let largeRows = OwnerRows.rows(
        [#"{"id":"\#(String(repeating: "a", count: 100_000))"}"#], [(.k1, 5)], head: 5, hasMore: true)

    private static let smallPage = (bytes: 48 << 10, rows: 48)

    /// A device that pulls more than it may has small pages, and is refused once it owes half of a bucket.
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
            for pull in [try await pull(), try await pull()] { #expect(pull.body.count > 100_000) }
            #expect(gateway.link.pulls.map(\.maximumBytes) == [4 << 20, Self.smallPage.bytes])
            #expect(gateway.link.pulls.map(\.limit) == [1000, Self.smallPage.rows])
            let refused = try await pull()
            #expect(refused.status == 429)
            #expect(refused["retry-after"] == "5")
            #expect(refused["ratelimit-policy"] == #""device-pulled-bytes";q=100000;w=10;qu="content-bytes""#)
            #expect(refused["ratelimit"] == #""device-pulled-bytes";r=0;t=5"#)
            #expect(refused.text.contains(#""detail":"this device may pull 10000 bytes per second""#))
            #expect(try await pull("k2").status == 200)
            #expect(try await gateway.exchange("POST", "/v1/upload", body(changes: 1)).status == 202)
            gateway.clock.advance(by: .seconds(5))
            #expect(try await pull().status == 200)
        }
        #expect(refused("device-pulled-bytes") == 1)
    }

    /// The next pull would come at once, and have as few rows; also where the page ends with an owner's last row, before the next owner.
    @Test(arguments: [true, false]) func aSmallPageThatIsNotTheLastIsHeldBack(endsInAnOwner: Bool) async throws {
        try await withGateway {
            $0.configuration.deviceRates = Rates(pulledBytes: 10_000)
            $0.configuration.refusalDelay = .seconds(1)
        } test: { gateway in
            func exchange(_ path: String) async throws -> HTTPClient.Answer {
                try await gateway.exchange("POST", path, links: "xyz:read", body())
            }
            var rows = Self.largeRows
            rows.hasMore = endsInAnOwner
            gateway.link.set(rows, of: .abc)
            gateway.link.cutPages(at: endsInAnOwner ? 2 : 1)
            #expect(try await exchange("/v1/pull").status == 200)
            let held = Task { try await exchange("/v1/pull") }
            await gateway.clock.sleeper(for: .seconds(1))
            // The last page is not.
            gateway.link.set(.rows([#"{"id":"a"}"#], [(.k1, 6)], head: 6), of: .abc)
            gateway.link.cutPages(at: 2)
            #expect(try await exchange("/v1/sync").status == 200)
            #expect(gateway.service.counters.waiting == 1)
            gateway.clock.advance(by: .seconds(1))
            let page = try await held.value
            #expect(page.text.contains(#""hasMore":true"#))
        }
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
            #expect(gateway.link.pulls.allSatisfy { $0.maximumBytes > Self.smallPage.bytes })
        }
    }

    @Test func aSmallRowCountsAKilobyte() async throws {
        try await withGateway {
            $0.configuration.deviceRates = Rates(pulledBytes: 10_000)
        } test: { gateway in
            let rows = (0..<60).map { #"{"id":"\#($0)"}"# }
            gateway.link.set(.rows(rows, [(.k1, 5)], head: 5, hasMore: true), of: .abc)
            for _ in 1...3 {
                let status = try await gateway.exchange("POST", "/v1/pull", body()).status
                #expect(status == 200)
            }
            // 60 KiB are missing, then 120.
            #expect(try await gateway.exchange("POST", "/v1/pull", body()).status == 429)
        }
    }

    @Test func pagesThatAreReadAtTheSameTimeCount() async throws {
        try await withGateway {
            $0.configuration.deviceRates = Rates(pulledBytes: 500 << 10)
        } test: { gateway in
            gateway.link.set(Self.largeRows, of: .abc)
            gateway.link.holdPulls(of: .abc)
            let pulls = (0..<2).map { _ in Task { try await gateway.exchange("POST", "/v1/pull", body()).status } }
            let asked = [await gateway.link.pullsAsked.next(), await gateway.link.pullsAsked.next()]
            #expect(Set(asked.map(\.maximumBytes)) == [4 << 20, Self.smallPage.bytes])
            gateway.link.releasePulls(of: .abc, count: 2)
            for pull in pulls {
                let status = try await pull.value
                #expect(status == 200)
            }
            _ = [await gateway.link.pullsAsked.next(), await gateway.link.pullsAsked.next()]
            // What they did not use is there again.
            #expect(try await gateway.exchange("POST", "/v1/pull", body()).status == 200)
            #expect(await gateway.link.pullsAsked.next().maximumBytes == 4 << 20)
        }
    }

    /// It is durable, and would be repeated.
    @Test(arguments: [#""batch":1,"#, ""])
    func anUploadIsNotRefusedForWhatOthersPull(batch: String) async throws {
        try await withGateway {
            $0.configuration.callerRates = Rates(pulledBytes: 100)
        } test: { gateway in
            gateway.link.set(.results([(0, .applied(6), nil)], summary: BatchSummary(changeCount: 1)), ofPart: 0)
            gateway.link.set(Self.largeRows, of: .abc)
            #expect(try await gateway.exchange("POST", "/v1/pull", body("k2")).status == 200)
            #expect(try await gateway.exchange("POST", "/v1/pull", body("k2")).status == 429)
            let sync = try await gateway.exchange(
                "POST", "/v1/sync", #"{"knowledgeId":"k1",\#(batch)"changes":[0]}"#)
            #expect(sync.status == 200)
            #expect(sync.text.contains(#""status":"applied""#) && sync.text.contains(#""hasMore":true"#))
            // A row may be large.
            #expect(gateway.link.pulls.count == 1)
        }
    }
}
