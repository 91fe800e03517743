import Gateway
import SyncModel
import Testing

@Suite(.timeLimit(.minutes(5))) struct SchemaTests {
    @Test func returnsTablesAndLimits() async throws {
        try await withGateway {
            $0.limits = SyncLimits(
                maxBatchBytes: 5000,
                outcome: OutcomeLimits(
                    maxChanges: 6, maxValueBytes: 70, maxRowBytes: 80, maxBatchRowBytes: 90, maxOwnerRows: 7,
                    maxOwnerBytes: 0))
            $0.configuration.keepAlive = .seconds(8)
        } test: { gateway in
            let answer = try await gateway.exchange("GET", "/v1/schema")
            #expect(answer.status == 200)
            #expect(
                answer.text == #"{"epoch":"e1","schemaVersion":"\#(TestGateway.version)","tables":["#
                    + #"{"name":"person","policy":"lastWriteWins","rank":0,"columns":["#
                    + #"{"name":"name","type":"text","nullable":false,"length":50},"#
                    + #"{"name":"pay","type":"decimal(10,2)","nullable":true,"default":"0.00"}]},"#
                    + #"{"name":"address","policy":"lastSyncWins","rank":1,"columns":["#
                    + #"{"name":"owner","type":"text","nullable":true,"references":"person","onDelete":"reassign"}]}],"#
                    + #""limits":{"maxBatchBytes":5000,"maxChanges":6,"maxValueBytes":70,"maxRowBytes":80,"maxBatchRowBytes":90,"maxOwnerRows":7,"maxOwnerBytes":0,"maxLimit":10000,"maxWait":50,"keepAlive":8}}"#
            )
        }
    }

    @Test func respondsNotModifiedToAKnownETag() async throws {
        var tag = ""
        try await withGateway { gateway in
            tag = try #require(try await gateway.exchange("GET", "/v1/schema")["etag"])
            for known in [tag, String(tag.dropFirst(2)), "\"x\", \(tag)", "*"] {
                let answer = try await gateway.exchange("GET", "/v1/schema", headers: ["If-None-Match: \(known)"])
                #expect(answer.status == 304, "\(known)")
                #expect(answer["etag"] == tag)
                #expect(answer.body.isEmpty)
            }
            let other = try await gateway.exchange("GET", "/v1/schema", headers: ["If-None-Match: \"x\""])
            #expect(other.status == 200)
        }
        // Other limits are news, too.
        try await withGateway {
            $0.limits = SyncLimits(outcome: OutcomeLimits(maxChanges: 9))
        } test: { gateway in
            let answer = try await gateway.exchange("GET", "/v1/schema", headers: ["If-None-Match: \(tag)"])
            #expect(answer.status == 200)
        }
    }
}
