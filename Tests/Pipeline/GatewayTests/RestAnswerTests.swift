import FanOutLink
import Gateway
import HTTP
import RestFace
import SyncModel
import TestSignals
import Testing

/// What the answers of arrays that were stored take of the limit of responses.
@Suite(.timeLimit(.minutes(5))) struct RestAnswerTests {
    private static let records =
        "[" + (0..<32).map { #"{"id":"r\#($0)","Ts":7,"pay":"1.00"}"# }.joined(separator: ",") + "]"

    /// As of an app whose schema lacks a column.
    @Test func twoCallersAreAnsweredWithSmallRowsAtTheSameTime() async throws {
        try await withGateway {
            $0.faces = GatewayFaces([RestFace()])
            $0.configuration.server.maxAnswerBytesInFlight = 8 << 20
            // Whoever finds no space is refused at once.
            $0.configuration.outcomeWait = .zero
        } test: { gateway in
            gateway.link.set(
                .results(
                    (0..<32).map { ($0, .applied(20), nil) }, summary: BatchSummary(changeCount: 32), head: 20),
                ofPart: 0)
            gateway.link.answerQueries { query in
                var found = StreamRows(head: TimeStamp(20))
                guard case .ids(_, let ids) = query.selection else { return found }
                for id in ids {
                    let row =
                        #"{"table":"person","id":"\#(id.text)","syncId":"abc","knowledgeId":"k1","timeStamp":20,"#
                        + #""version":2,"deleted":false,"updatedAt":"2025-01-01T00:00:00.000000Z","#
                        + #""writer":{"syncId":"abc","knowledgeId":"k1"},"values":{"name":"A","pay":"1.00"}}"#
                    found.append(
                        table: 0, timeStamp: TimeStamp(20), createdAt: 0, isExact: true, columns: 2,
                        json: Array(row.utf8).span.bytes)
                }
                return found
            }
            let release = gateway.link.holdNextQuery()
            let first = try HTTPClient(port: gateway.port)
            let headers = FaceTests.device + ["Content-Type: application/json"]
            try await first.send(
                "PUT", "/rest/person", headers: TestGateway.headers() + headers, body: Array(Self.records.utf8))
            await gateway.link.queriesHeld.next()
            let second = try await gateway.exchange("PUT", "/rest/person", as: "xyz", headers: headers, Self.records)
            #expect(second.status == 200, "\(second.text)")
            release()
            let answer = try await first.answer()
            #expect(answer.status == 200 && answer.text == second.text)
            #expect(answer.text.hasPrefix(#"[{"id":"r0","name":"A","pay":"1.00","Ts":20,"Deleted":false},"#))
        }
    }
}
