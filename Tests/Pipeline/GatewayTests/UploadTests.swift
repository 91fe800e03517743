import ChangeLog
import FanOutLink
import Gateway
import SyncModel
import SyncWire
import Synchronization
import TestSignals
import Testing

@Suite(.timeLimit(.minutes(5))) struct UploadTests {
    @Test func appendsOneRecordWithEverythingThatOrderingNeeds() async throws {
        try await withGateway { gateway in
            let changes = #"[ {"table":"person", "id":"ü\u0041", "values":{"name":1.50}} , 7 ]"#
            let answer = try await gateway.exchange(
                "POST", "/v1/upload", links: "xyz:read,q:write",
                #"{"knowledgeId":"k1","epoch":"e1","schemaVersion":"\#(TestGateway.oldVersion)","batch":7,"atomic":true,"#
                    + #""changes": \#(changes) }"#)
            #expect(answer.status == 202)
            #expect(answer.text == #"{"batch":7}"#)
            let record = try #require(gateway.log.records.first)
            #expect(gateway.log.records.count == 1)
            #expect(record.destination == TopicPartition(.uploads, Partitioning(count: 4).partition(of: .abc)))
            #expect(record.key == Array("abc".utf8))
            #expect(
                try ChangeBatch(decoding: record.value)
                    == ChangeBatch(
                        epoch: "e1", schema: TestGateway.oldVersion, device: Device(caller: .abc, knowledgeID: .k1),
                        batch: 7, isAtomic: true,
                        grants: [
                            Grant(owner: .abc, access: .write), Grant(owner: .xyz, access: .read),
                            Grant(owner: SyncID(unchecked: "q"), access: .write),
                        ], limits: SyncLimits.standardOutcome, changes: Array(changes.utf8)))
        }
    }

    @Test func usesTheNewestSchemaVersionForNoneOrAnUnknownOne() async throws {
        try await withGateway { gateway in
            for version in ["", #""schemaVersion":"ffffffffffffffffffffffffffffffff","#, #""schemaVersion":null,"#] {
                let answer = try await gateway.exchange(
                    "POST", "/v1/upload", #"{"knowledgeId":"k1",\#(version)"changes":[{}]}"#)
                #expect(answer.status == 202)
                #expect(answer.text == "{}")
            }
            #expect(try gateway.batches.map(\.schema) == Array(repeating: TestGateway.version, count: 3))
            #expect(try gateway.batches.allSatisfy { $0.batch == nil && !$0.isAtomic && $0.epoch == "e1" })
        }
    }

    @Test func changesOfAVersionThatOtherGatewaysHaveLearnedWaitUntilItIsKnownHere() async throws {
        let schemas = Mutex(TestGateway.olderSchemas)
        try await withGateway {
            $0.schemas = { schemas.withLock { $0 } }
        } test: { gateway in
            let request = """
                {"knowledgeId":"k1","epoch":"e1","schemaVersion":"\(TestGateway.version)","batch":7,"changes":[{}]}
                """
            let early = try await gateway.exchange("POST", "/v1/upload", request)
            #expect(early.status == 503 && early.text.contains(#""code":"not_ready""#))
            #expect(early["retry-after"] == "1")
            #expect(try gateway.batches.isEmpty)
            schemas.withLock { $0 = TestGateway.schemas }
            #expect(try await gateway.exchange("POST", "/v1/upload", request).status == 202)
            #expect(try gateway.batches.map(\.schema) == [TestGateway.version])
        }
    }

    @Test func respondsWhenTheAppendIsDurable() async throws {
        try await withGateway { gateway in
            gateway.log.hold()
            let client = try HTTPClient(port: gateway.port)
            try await client.send(
                "POST", "/v1/upload", headers: TestGateway.headers(),
                body: Array(#"{"knowledgeId":"k1","batch":1}"#.utf8))
            await gateway.log.arrivals.next()
            // Held back by the log: nothing is answered, and the batch is not known to be there.
            #expect(gateway.service.counters.waiting == 1)
            let known = try await gateway.exchange("GET", "/v1/batches/1?knowledgeId=k1")
            #expect(known.status == 404)
            gateway.log.release()
            #expect(try await client.answer().status == 202)
        }
    }

    @Test func appendsNothingUnderAnotherEpoch() async throws {
        try await withGateway { gateway in
            for (batch, number) in [(#""batch":3,"#, #""batch":3,"#), ("", "")] {
                let answer = try await gateway.exchange(
                    "POST", "/v1/upload", #"{"knowledgeId":"k1","epoch":"e0",\#(batch)"changes":[{}]}"#)
                #expect(answer.status == 200)
                #expect(
                    answer.text == #"{"batch":{\#(number)"refused":{"code":"history_changed","message":"#
                        + #""the epoch differs from the server's, whose history was recreated; "#
                        + #"nothing was applied"}}}"#)
            }
            #expect(gateway.log.records.isEmpty)
        }
    }

    @Test func appendsNothingForNoChangesWithoutANumber() async throws {
        try await withGateway { gateway in
            let body = #"{"knowledgeId":"k1","changes":[]}"#
            #expect(try await gateway.exchange("POST", "/v1/upload", body).text == "{}")
            let waited = try await gateway.exchange("POST", "/v1/upload", headers: ["Prefer: wait=1"], body)
            #expect(waited.text == #"{"batch":{"results":[]}}"#)
            #expect(gateway.log.records.isEmpty)
        }
    }

    @Test(arguments: [
        ("wait=10", 10), ("respond-async, wait=3", 3), ("WAIT = \"4\"", 4), ("wait=100", 50),
        ("wait=99999999999999999999", nil),
    ])
    func waitsForTheOutcomeAsLongAsPreferred(prefer: String, seconds: Int?) async throws {
        try await withGateway { gateway in
            gateway.link.set(.results([(0, .applied(5), nil)], summary: BatchSummary(changeCount: 1)), ofPart: 0)
            let answer = try await gateway.exchange(
                "POST", "/v1/upload", headers: ["Prefer: \(prefer)"], #"{"knowledgeId":"k1","batch":1,"changes":[{}]}"#)
            guard let seconds else {
                #expect(answer.status == 202)
                #expect(gateway.link.asked.isEmpty)
                return
            }
            #expect(answer.status == 200)
            #expect(
                answer.text
                    == #"{"batch":{"batch":1,"results":[{"status":"applied","timeStamp":5,"version":1,"knowledgeId":"k1"}]}}"#
            )
            #expect(gateway.link.withins == [.seconds(seconds)])
        }
    }

    @Test(arguments: [FanOutError.pending, .notReady("it is being built"), .closed])
    func saysThatItIsDurableWhereTheOutcomeDoesNotCome(error: FanOutError) async throws {
        try await withGateway { gateway in
            gateway.link.failOutcomes(error)
            let body = #"{"knowledgeId":"k1","batch":1,"changes":[{}]}"#
            let upload = try await gateway.exchange("POST", "/v1/upload", headers: ["Prefer: wait=1"], body)
            #expect(upload.status == 202)
            let sync = try await gateway.exchange("POST", "/v1/sync", body)
            #expect(sync.status == 504)
            #expect(sync.text.contains(#""code":"outcome_pending""#))
            #expect(gateway.link.withins == [.seconds(1), .seconds(10)])
        }
    }

    @Test(arguments: [
        (ChangeLogError.Code.storageFull, 503, "storage_full"), (.inputOutput, 503, "not_ready"),
        (.recordTooLarge(maximum: 5), 413, "batch_too_large"), (.closed, 503, "not_ready"),
    ])
    func tellsWhyTheLogTakesNothing(failure: ChangeLogError.Code, status: Int, code: String) async throws {
        try await withGateway { gateway in
            gateway.log.fail(with: ChangeLogError(failure, message: "no"))
            for target in ["/v1/upload", "/v1/sync"] {
                let answer = try await gateway.exchange("POST", target, #"{"knowledgeId":"k1","batch":1}"#)
                #expect(answer.status == status)
                #expect(answer.text.contains(#""code":"\#(code)""#))
                #expect((answer["retry-after"] != nil) == (status == 503))
            }
            // A producer that failed is closed and replaced, each time (I1).
            #expect(gateway.log.producers == 2)
            #expect(gateway.log.openProducers == 0)
            gateway.log.fail(with: nil)
            for batch in 1...2 {
                let answer = try await gateway.exchange(
                    "POST", "/v1/upload", #"{"knowledgeId":"k1","batch":\#(batch)}"#)
                #expect(answer.status == 202)
            }
            #expect(gateway.log.producers == 3)
        }
    }

    @Test func refusesABatchLargerThanARecordWithoutAppendingIt() async throws {
        try await withGateway {
            $0.log = MemoryLog(maximumRecordSize: 1000)
        } test: { gateway in
            let text = String(repeating: "x", count: 1000)
            let answer = try await gateway.exchange(
                "POST", "/v1/upload", #"{"knowledgeId":"k1","changes":["\#(text)"]}"#)
            #expect(answer.status == 413)
            #expect(answer.text.contains(#""code":"batch_too_large""#))
            #expect(gateway.log.producers == 0)
        }
    }

    @Test func sharesOneProducer() async throws {
        try await withGateway { gateway in
            try await withThrowingTaskGroup(of: Int.self) { group in
                for batch in 1...20 {
                    group.addTask {
                        try await gateway.exchange("POST", "/v1/upload", #"{"knowledgeId":"k1","batch":\#(batch)}"#)
                            .status
                    }
                }
                for try await status in group { #expect(status == 202) }
            }
            #expect(gateway.log.producers == 1)
            #expect(try Set(gateway.batches.map(\.batch)) == Set((1...20).map { Int64($0) }))
        }
    }

    @Test func isNotReadyWithoutASchema() async throws {
        try await withGateway {
            $0.schemas = { SchemaHistory() }
        } test: { gateway in
            for (method, target) in [
                ("POST", "/v1/sync"), ("POST", "/v1/upload"), ("POST", "/v1/pull"), ("GET", "/v1/schema"),
            ] {
                let answer = try await gateway.exchange(
                    method, target, method == "GET" ? nil : #"{"knowledgeId":"k1","batch":1}"#)
                #expect(answer.status == 503)
                #expect(answer["retry-after"] == "1")
                #expect(answer.text.contains(#""code":"not_ready""#))
            }
            #expect(gateway.log.records.isEmpty)
        }
    }
}
