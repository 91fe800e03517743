import HTTP
import SyncModel
import Synchronization
import TestClocks
import Testing

@testable import Gateway

/// Answers that are large without a page: what they have in memory counts for their caller.
@Suite(.timeLimit(.minutes(5))) struct LargeAnswerTests {
    private static let limit = 1 << 20
    private let never: @Sendable () async throws -> Void = { try await Task.sleep(for: .seconds(3600)) }

    /// A gateway whose answers have a megabyte together, of which `abc` has most of its share.
    private func withShare(
        _ prepare: (inout TestGateway.Setup) -> Void = { _ in }, test: (TestGateway) async throws -> Void
    ) async throws {
        try await withGateway {
            $0.configuration.server.maxAnswerBytesInFlight = Self.limit
            prepare(&$0)
        } test: { gateway in
            let held = try await gateway.handler.responseBudget.reserve(Self.limit / 2, for: "abc", timeout: never)
            try await test(gateway)
            withExtendedLifetime(held) {}
        }
    }

    /// Sends a request, and lets the time pass that its answer may wait for space.
    private func answer(
        _ gateway: TestGateway, _ method: String, _ path: String, headers: [String] = [], _ body: String? = nil
    ) async throws -> HTTPClient.Answer {
        let isAnswered = Atomic(false)
        let sent = Task {
            defer { isAnswered.store(true, ordering: .relaxed) }
            return try await gateway.exchange(method, path, headers: headers, body)
        }
        while !isAnswered.load(ordering: .relaxed), gateway.handler.responseBudget.waiting == 0 { await Task.yield() }
        gateway.clock.advance(by: .seconds(10))
        return try await sent.value
    }

    /// It is stored, so it is never refused.
    @Test func anUploadWhoseResultsFindNoSpaceIsAccepted() async throws {
        try await withShare { gateway in
            let results = (0..<4000).map { ($0, ChangeResult.Status.applied(Int64($0)), nil as Int64?) }
            gateway.link.set(.results(results, summary: BatchSummary(changeCount: results.count)), ofPart: 0)
            let upload = #"{"knowledgeId":"k1","batch":1,"changes":[1]}"#
            let prefer = ["Prefer: wait=10"]
            let other = try await gateway.exchange("POST", "/v1/upload", as: "xyz", headers: prefer, upload)
            #expect(other.status == 200 && other.body.count > 200_000)
            let accepted = try await answer(gateway, "POST", "/v1/upload", headers: prefer, upload)
            #expect(accepted.status == 202 && accepted.text == #"{"batch":1}"#)
            #expect(try gateway.batches.count == 2)
        }
    }

    @Test(arguments: [0, 5]) func aPullOfALargeVectorWaitsForTheShareOfItsCaller(wait: Int) async throws {
        try await withShare { gateway in
            let entries = (0..<5000).map { entry("device-\($0)", 0) }.joined(separator: ",")
            func pull(_ caller: String) -> String {
                let knowledge = entries.replacing(#""syncId":"abc""#, with: #""syncId":"\#(caller)""#)
                return #"{"knowledgeId":"k1","wait":\#(wait),"knowledge":[\#(knowledge)]}"#
            }
            gateway.link.set(.rows([], [(.k1, 5)], head: 5), of: .abc)
            gateway.link.set(.rows([], [(.k1, 5)], head: 5), of: .xyz)
            let other = try await gateway.exchange("POST", "/v1/pull", as: "xyz", pull("xyz"))
            #expect(other.status == 200 && other.body.count > 300_000)
            let refused = try await answer(gateway, "POST", "/v1/pull", pull("abc"))
            #expect(refused.status == 503 && refused.text.contains(#""code":"overloaded""#))
        }
    }

    @Test func aLargeSchemaWaitsForTheShareOfItsCaller() async throws {
        let columns = (0..<9000).map { Column(name: "column\($0)", type: .text) }
        var wide = SchemaHistory()
        wide.append(
            SchemaHistory.Entry(
                version: SchemaVersion(ordinal: 1, hash: TestGateway.version),
                schema: Schema(tables: [Table(name: "wide", columns: columns)])))
        try await withShare { [wide] in
            $0.schemas = { wide }
        } test: { gateway in
            let other = try await gateway.exchange("GET", "/v1/schema", as: "xyz")
            #expect(other.status == 200 && other.body.count > 300_000)
            #expect(try await answer(gateway, "GET", "/v1/schema").status == 503)
        }
    }

    @Test func aLargeAnswerOfAFaceWaitsForTheShareOfItsCaller() async throws {
        try await withShare {
            $0.faces = GatewayFaces([LargeFace()])
        } test: { gateway in
            let device = ["X-Device-Id: k1"]
            #expect(try await gateway.exchange("GET", "/large", as: "xyz", headers: device).status == 200)
            let refused = try await answer(gateway, "GET", "/large", headers: device)
            #expect(refused.status == 503 && refused["content-type"] == "application/problem+json")
        }
    }

    /// All answers with them have the same bytes; the client takes less at once than the document has.
    @Test func documentsThatAreNotReadTakeNoSpace() async throws {
        try await withGateway {
            $0.configuration.server.maxAnswerBytesInFlight = Self.limit
        } test: { gateway in
            var unread: [HTTPClient] = []
            for _ in 0..<10 {
                let client = try HTTPClient(port: gateway.port, receiveBuffer: 2048, segment: 536)
                unread.append(client)
                try await client.send("GET", "/openapi.json")
                #expect(try await client.head().status == 200)
                #expect(gateway.service.counters.http.answerBytesInFlight == 0)
            }
        }
    }
}

/// A face whose answer is large.
private struct LargeFace: Face {
    var prefix: String { "large" }
    var routes: [FaceRoute] { [FaceRoute("/large", [.get])] }

    func problem(with schema: Schema) -> String? { nil }

    func respond(to request: FaceRequest, _ session: any FaceSession) async throws -> HTTPResponse {
        HTTPResponse(status: 200, body: [UInt8](repeating: 0x61, count: 400_000))
    }
}
