import ChangeLog
import Gateway
import HTTP
import Metrics
import Testing

/// What the gateway counts.
@Suite(.timeLimit(.minutes(5))) struct MetricsTests {
    private let registry = MetricRegistry()

    private func requests(_ route: String, _ status: String) -> Int {
        registry.counter(.httpRequests, [.route: route, .status: status]).value
    }

    private func problems(_ code: ProblemCode) -> Int {
        registry.counter(.gatewayProblems, [.reason: code.rawValue]).value
    }

    @Test func countsResponsesByRouteAndStatus() async throws {
        try await withGateway {
            $0.metrics = registry
        } test: { gateway in
            let answers = [
                try await gateway.exchange("POST", "/v1/upload", #"{"knowledgeId":"k1","changes":[1,2,3]}"#),
                try await gateway.exchange("POST", "/v1/upload", #"{"knowledgeId":"k1","changes":["#),
                // Refused before the body is read.
                try await gateway.exchange("POST", "/v1/sync", as: nil, "{}"),
                try await gateway.exchange("GET", "/v1/batches/7?knowledgeId=k1&x=secret-of-abc"),
                try await gateway.exchange("GET", "/secret-of-abc"),
            ]
            #expect(answers.map(\.status) == [202, 400, 401, 404, 404])
        }
        #expect(requests("/v1/upload", "202") == 1)
        #expect(requests("/v1/upload", "400") == 1)
        #expect(requests("/v1/sync", "401") == 1)
        #expect(requests("/v1/batches/{batch}", "404") == 1)
        #expect(requests("other", "404") == 1)
        #expect(registry.histogram(.httpDuration, [.route: "/v1/upload"]).snapshot.cumulative.last == 2)
        #expect(problems(.malformedJSON) == 1)
        #expect(problems(.unauthenticated) == 1)
        #expect(problems(.notFound) == 2)
        #expect(problems(.overloaded) == 0)
        #expect(registry.counter(.gatewayUploads).value == 1)
        #expect(registry.counter(.gatewayChanges).value == 3)
        #expect(registry.histogram(.gatewayUploadSize).snapshot.sum == 7)
        let text = String(decoding: await registry.text(), as: UTF8.self)
        #expect(!text.contains("abc"))
    }

    @Test func countsFailedAppends() async throws {
        try await withGateway {
            $0.metrics = registry
        } test: { gateway in
            gateway.log.fail(with: ChangeLogError(.storageFull, message: "no"))
            let answer = try await gateway.exchange("POST", "/v1/upload", #"{"knowledgeId":"k1","changes":[1]}"#)
            #expect(answer.status == 503)
        }
        #expect(requests("/v1/upload", "503") == 1)
        #expect(problems(.storageFull) == 1)
        #expect(registry.counter(.gatewayAppendFailures).value == 1)
        #expect(registry.counter(.gatewayUploads).value == 0)
    }
}
