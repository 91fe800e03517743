import FanOutLink
import Gateway
import SyncModel
import TestClocks
import Testing

@Suite(.timeLimit(.minutes(5))) struct BatchLookupTests {
    private let path = "/v1/batches/7?knowledgeId=k1"
    private let outcome = PartOutcome.results([(0, .applied(5), nil)], summary: BatchSummary(changeCount: 1))
    private let text =
        #"{"batch":{"batch":7,"results":[{"status":"applied","timeStamp":5,"version":1,"knowledgeId":"k1"}]}}"#

    @Test func returnsAKeptOutcome() async throws {
        try await withGateway { gateway in
            gateway.link.keep(outcome, of: 7, with: .abc)
            let answer = try await gateway.exchange("GET", path)
            #expect(answer.status == 200)
            #expect(answer.text == text)
            #expect(answer["cache-control"] == "no-store")
            #expect(gateway.link.withins == [.zero])
        }
    }

    @Test func reportsAnAppendedBatchAsPending() async throws {
        try await withGateway { gateway in
            #expect(try await gateway.exchange("GET", path).status == 404)
            #expect(try await gateway.exchange("POST", "/v1/upload", #"{"knowledgeId":"k1","batch":7}"#).status == 202)
            let pending = try await gateway.exchange("GET", path)
            #expect(pending.status == 202)
            #expect(pending.text == #"{"batch":7}"#)
            // Another device's batch is another one.
            #expect(try await gateway.exchange("GET", "/v1/batches/7?knowledgeId=k2").status == 404)
            #expect(try await gateway.exchange("GET", path, as: "xyz").status == 404)
            gateway.link.set(outcome, ofPart: 0)
            let answer = try await gateway.exchange("GET", path)
            #expect(answer.status == 200)
            #expect(answer.text == text)
        }
    }

    @Test func returnsABatchRefusalThatIsNotKept() async throws {
        try await withGateway { gateway in
            gateway.link.keep(outcome, of: 7, with: .abc)
            gateway.link.set(PartOutcome(refusal: .batchMismatch), ofPart: 0)
            #expect(try await gateway.exchange("POST", "/v1/upload", #"{"knowledgeId":"k1","batch":7}"#).status == 202)
            let answer = try await gateway.exchange("GET", path)
            #expect(answer.status == 200)
            #expect(answer.text.hasPrefix(#"{"batch":{"batch":7,"refused":{"code":"batch_mismatch""#))
        }
    }

    @Test func isNotFoundWhenTheUploadIsTooOld() async throws {
        try await withGateway { gateway in
            #expect(try await gateway.exchange("POST", "/v1/upload", #"{"knowledgeId":"k1","batch":7}"#).status == 202)
            gateway.clock.advance(by: .seconds(300))
            #expect(try await gateway.exchange("GET", path).status == 202)
            gateway.clock.advance(by: .seconds(1))
            let answer = try await gateway.exchange("GET", path)
            #expect(answer.status == 404)
            #expect(answer.text.contains("send it again with the same number"))
        }
    }

    @Test func isPendingUntilEveryOwnersPartIsKnown() async throws {
        try await withGateway { gateway in
            let summary = BatchSummary(changeCount: 2, otherOwners: [.xyz])
            gateway.link.keep(.results([(0, .applied(5), nil)], summary: summary), of: 7, with: .abc)
            let pending = try await gateway.exchange("GET", path)
            #expect(pending.status == 202)
            gateway.link.keep(.results([(1, .applied(6), nil)]), of: 7, with: .xyz)
            let answer = try await gateway.exchange("GET", path)
            #expect(answer.status == 200)
        }
    }

    @Test func isNotReadyIfAStreamIsNot() async throws {
        try await withGateway { gateway in
            gateway.link.failOutcomes(.notReady("the stream is being built"))
            let answer = try await gateway.exchange("GET", path)
            #expect(answer.status == 503)
            #expect(answer["retry-after"] == "1")
        }
    }

    @Test(arguments: [
        "/v1/batches/0?knowledgeId=k1", "/v1/batches/-1?knowledgeId=k1", "/v1/batches/x?knowledgeId=k1",
        "/v1/batches/9007199254740992?knowledgeId=k1", "/v1/batches/%C2%B2?knowledgeId=k1", "/v1/batches/1",
        "/v1/batches/1?knowledgeId=", "/v1/batches/1?knowledgeId=*", "/v1/batches/1?knowledgeId=a&knowledgeId=a",
        "/v1/batches/1?KnowledgeId=k1",
    ])
    func refusesAnInvalidBatchOrDevice(target: String) async throws {
        try await withGateway { gateway in
            let answer = try await gateway.exchange("GET", target)
            #expect(answer.status == 422)
            #expect(answer.text.contains(#""code":"invalid_request""#))
        }
    }
}
