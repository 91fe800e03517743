import FanOutLink
import Gateway
import HTTP
import SyncModel
import TestClocks
import TestSignals
import Testing

@Suite(.timeLimit(.minutes(5))) struct AdmissionTests {
    private let upload = #"{"knowledgeId":"k1","changes":[{}]}"#

    @Test func refusesALargeBodyBeforeItIsRead() async throws {
        try await withGateway {
            $0.limits = SyncLimits(maxBatchBytes: 1000)
        } test: { gateway in
            let client = try HTTPClient(port: gateway.port)
            // The body never comes.
            try await client.send(
                "POST", "/v1/upload", headers: TestGateway.headers() + ["Content-Length: 1001", "Expect: 100-continue"])
            let answer = try await client.answer()
            #expect(answer.status == 413)
            #expect(answer["content-type"] == "application/problem+json")
            #expect(answer.text.contains(#""status":413,"code":"batch_too_large""#))
            let fits = try await gateway.exchange(
                "POST", "/v1/upload", #"{"knowledgeId":"k1","batch":1}"# + String(repeating: " ", count: 970))
            #expect(fits.status == 202)
        }
    }

    @Test(arguments: [("text/plain", "X-Sync-Id: abc", 415), ("application/json", "X-Other: abc", 401)])
    func refusesWhatCannotSucceedBeforeTheBodyIsRead(type: String, caller: String, status: Int) async throws {
        try await withGateway { gateway in
            let client = try HTTPClient(port: gateway.port)
            try await client.send(
                "POST", "/v1/sync",
                headers: ["Content-Length: 1000", "Content-Type: \(type)", caller, "Expect: 100-continue"])
            #expect(try await client.answer().status == status)
        }
    }

    @Test func acceptsBatchesLargerThanTheServersDefault() async throws {
        try await withGateway {
            $0.limits = SyncLimits(maxBatchBytes: 6 << 20)
        } test: { gateway in
            let text = String(repeating: "x", count: 5 << 20)
            let answer = try await gateway.exchange(
                "POST", "/v1/upload", #"{"knowledgeId":"k1","changes":["\#(text)"]}"#)
            #expect(answer.status == 202)
        }
    }

    @Test func refusesTooManyChanges() async throws {
        try await withGateway {
            $0.limits = SyncLimits(outcome: OutcomeLimits(maxChanges: 3))
        } test: { gateway in
            for (changes, status) in [("1,2,3", 202), ("1,2,3,4", 413)] {
                let answer = try await gateway.exchange(
                    "POST", "/v1/upload", #"{"knowledgeId":"k1","changes":[\#(changes)]}"#)
                #expect(answer.status == status)
                if status == 413 { #expect(answer.text.contains(#""code":"batch_too_large","detail":"4 changes"#)) }
            }
        }
    }

    @Test func limitsTheBytesInFlightOfACaller() async throws {
        try await withGateway {
            $0.configuration.callerBytesInFlight = 1024
        } test: { gateway in
            let text = String(repeating: "x", count: 1500)
            let body = #"{"knowledgeId":"k1","changes":["\#(text)"]}"#
            gateway.log.hold()
            // The first is let in whatever its size.
            let first = try HTTPClient(port: gateway.port)
            try await first.send("POST", "/v1/upload", headers: TestGateway.headers(), body: Array(body.utf8))
            await gateway.log.arrivals.next()
            #expect(gateway.service.counters.uploadBytes == 1504)
            let second = try await gateway.exchange("POST", "/v1/upload", body)
            #expect(second.status == 429)
            #expect(second["retry-after"] == "1")
            // Pulls and other callers go on.
            #expect(try await gateway.exchange("POST", "/v1/pull", #"{"knowledgeId":"k1"}"#).status == 200)
            let other = try HTTPClient(port: gateway.port)
            try await other.send("POST", "/v1/upload", headers: TestGateway.headers("xyz"), body: Array(body.utf8))
            await gateway.log.arrivals.next()
            gateway.log.release()
            #expect(try await first.answer().status == 202)
            #expect(try await other.answer().status == 202)
            #expect(try await gateway.exchange("POST", "/v1/upload", body).status == 202)
        }
    }

    @Test func limitsTheBytesInFlightOfAllUploads() async throws {
        try await withGateway {
            $0.configuration.uploadBytesInFlight = 1000
        } test: { gateway in
            let text = String(repeating: "x", count: 600)
            let body = #"{"knowledgeId":"k1","changes":["\#(text)"]}"#
            gateway.log.hold()
            let first = try HTTPClient(port: gateway.port)
            try await first.send("POST", "/v1/upload", headers: TestGateway.headers(), body: Array(body.utf8))
            await gateway.log.arrivals.next()
            let second = try await gateway.exchange("POST", "/v1/sync", as: "xyz", body)
            #expect(second.status == 503)
            #expect(second["retry-after"] == "1")
            #expect(second.text.contains(#""code":"overloaded""#))
            gateway.log.release()
            #expect(try await first.answer().status == 202)
        }
    }

    @Test func refusesRequestsAboveTheLimitOfWaitingOnes() async throws {
        try await withGateway {
            $0.configuration.maxWaiting = 1
        } test: { gateway in
            gateway.log.hold()
            let first = try HTTPClient(port: gateway.port)
            try await first.send("POST", "/v1/upload", headers: TestGateway.headers(), body: Array(upload.utf8))
            await gateway.log.arrivals.next()
            for (target, body) in [
                ("/v1/sync", upload), ("/v1/upload", upload), ("/v1/pull", #"{"knowledgeId":"k1","wait":9}"#),
            ] {
                let answer = try await gateway.exchange("POST", target, body)
                #expect(answer.status == 503)
                #expect(answer["retry-after"] == "1")
                #expect(answer.text.contains(#""code":"overloaded""#))
            }
            // What is answered at once waits for nobody.
            #expect(try await gateway.exchange("POST", "/v1/pull", #"{"knowledgeId":"k1"}"#).status == 200)
            gateway.log.release()
            #expect(try await first.answer().status == 202)
            #expect(try await gateway.exchange("POST", "/v1/upload", upload).status == 202)
        }
    }

    @Test func sendsRetryAfterOnceIfTheServerIsFull() async throws {
        try await withGateway {
            $0.configuration.server.maxBytesInFlight = 100
        } test: { gateway in
            let answer = try await gateway.exchange("POST", "/v1/sync", upload + String(repeating: " ", count: 200))
            #expect(answer.status == 503)
            // Not there when it is there twice.
            #expect(answer["retry-after"] == "1")
            #expect(answer.text.contains(#""status":503,"code":"overloaded""#))
        }
    }

    @Test func limitsTheTimeForARequestToArrive() async throws {
        try await withGateway {
            $0.configuration.server.requestTimeout = .milliseconds(50)
        } test: { gateway in
            let client = try HTTPClient(port: gateway.port)
            try await client.send("POST", "/v1/sync", headers: TestGateway.headers() + ["Content-Length: 10"])
            let answer = try await client.answer()
            #expect(answer.status == 408)
            #expect(answer.text.contains(#""status":408,"code":"request_timeout""#))
        }
    }
}
