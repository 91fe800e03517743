import FanOutLink
import Gateway
import HTTP
import SyncModel
import TestClocks
import TestSignals
import Testing

/// The rows of conflicts and refusals in the responses to a batch.
@Suite(.timeLimit(.minutes(5))) struct ShownRowsTests {
    private let upload = #"{"knowledgeId":"k1","batch":7,"changes":[1,2,3,4,5,6]}"#

    /// A row of 1,000 bytes.
    private static func row(_ index: Int) -> String {
        let start = #"{"id":"r\#(index)","pad":""#
        return start + String(repeating: "x", count: 1000 - start.utf8.count - 2) + #""}"#
    }

    @Test func showsARowOnceForAllOfItsChanges() async throws {
        try await withGateway { gateway in
            let results: [(Int, ChangeResult.Status, heldFrom: Int64?)] = [
                (0, .conflict, nil), (1, .conflict, nil), (2, .refused(.batchAborted, message: "m"), nil),
                (3, .conflict, nil),
            ]
            gateway.link.set(
                .results(
                    results, summary: BatchSummary(changeCount: 4), rows: [0: #"{"a":1}"#, 1: #"{"b":1}"#],
                    ids: [0: "a", 1: "b", 2: "a", 3: "b"]), ofPart: 0)
            let answer = try await gateway.exchange("POST", "/v1/upload", headers: ["Prefer: wait=1"], upload)
            #expect(
                answer.text == #"{"batch":{"batch":7,"results":[{"status":"conflict","row":{"a":1}},"#
                    + #"{"status":"conflict","row":{"b":1}},"#
                    + #"{"status":"refused","code":"batch_aborted","message":"m","sameRowAs":0},"#
                    + #"{"status":"conflict","sameRowAs":1}]}}"#)
        }
    }

    /// The parts of two owners, whose rows alternate in the request.
    private func setParts(of gateway: TestGateway, isRepeat: Bool) {
        let own = PartOutcome.results(
            [0, 2, 4].map { ($0, .conflict, nil) }, summary: BatchSummary(changeCount: 6, otherOwners: [.xyz]),
            isRepeat: isRepeat, rows: [0: Self.row(0), 2: Self.row(2), 4: Self.row(4)])
        let other = PartOutcome.results(
            [1, 3, 5].map { ($0, .conflict, nil) }, isRepeat: isRepeat,
            rows: [1: Self.row(1), 3: Self.row(3), 5: Self.row(5)])
        gateway.link.set(own, ofPart: 0)
        gateway.link.set(other, ofPart: 1)
        gateway.link.keep(own, of: 7, with: .abc)
        gateway.link.keep(other, of: 7, with: .xyz)
    }

    @Test(arguments: [false, true]) func endsAtTheSizeOfAPageAndContinuesOnRequest(isRepeat: Bool) async throws {
        try await withGateway {
            $0.configuration.pageBytes = 2500
        } test: { gateway in
            setParts(of: gateway, isRepeat: isRepeat)
            let answer = try await gateway.exchange(
                "POST", "/v1/upload", links: "xyz:write", headers: ["Prefer: wait=1"], upload)
            #expect(
                answer.text == #"{"batch":{"batch":7,"results":[{"status":"conflict","row":\#(Self.row(0))},"#
                    + #"{"status":"conflict","row":\#(Self.row(1))},{"status":"conflict"},"#
                    + #"{"status":"conflict"},{"status":"conflict"},{"status":"conflict"}],"rowsFrom":2}}"#)
            // The second owner's rows after the last one shown of the first are not read.
            #expect(
                gateway.link.windows == [
                    nil, nil, RowWindow(maximumBytes: 2500), RowWindow(to: 4, maximumBytes: 2500),
                ])
            let rest = try await gateway.exchange(
                "GET", "/v1/batches/7?knowledgeId=k1&rowsFrom=2", links: "xyz:write")
            #expect(
                rest.text == #"{"batch":{"batch":7,"rows":[{"result":2,"row":\#(Self.row(2))},"#
                    + #"{"result":3,"row":\#(Self.row(3))}],"rowsFrom":4}}"#)
        }
    }

    /// Another caller's request, which waits while its page is read, leaves too little for the rows and the page.
    @Test(arguments: [("/v1/upload", 202), ("/v1/sync", 503)])
    func rowsAreReadOnceTheirSizeIsReserved(target: String, status: Int) async throws {
        try await withGateway {
            $0.configuration.pageBytes = 1 << 20
            $0.configuration.server.maxAnswerBytesInFlight = 1 << 20
            $0.configuration.outcomeWait = .seconds(1)
        } test: { gateway in
            setParts(of: gateway, isRepeat: false)
            gateway.link.setIdle(false)
            gateway.link.holdPulls(of: SyncID(unchecked: "other"))
            let other = try HTTPClient(port: gateway.port)
            try await other.send(
                "POST", "/v1/pull", headers: TestGateway.headers("other"), body: Array(#"{"knowledgeId":"k1"}"#.utf8))
            _ = await gateway.link.pullsAsked.next()
            func send(_ body: String) async throws -> HTTPClient {
                let client = try HTTPClient(port: gateway.port)
                try await client.send(
                    "POST", target, headers: TestGateway.headers("abc", "xyz:write") + ["Prefer: wait=1"],
                    body: Array(body.utf8))
                await gateway.clock.sleeper(for: .seconds(1))
                gateway.clock.advance(by: .seconds(1))
                return client
            }
            // The upload is durable.
            #expect(try await send(upload).answer().status == status)
            #expect(gateway.link.windows == [nil, nil])
            // A repeat of a batch without a number would be applied again, so nothing asks for one.
            let unnumbered = upload.replacing(#""batch":7,"#, with: "")
            #expect(try await send(unnumbered).answer().status == (status == 503 ? 504 : 202))
            gateway.link.releasePulls(of: SyncID(unchecked: "other"))
            #expect(try await other.answer().status == 200)
            let shown = try await gateway.exchange(
                "POST", target, links: "xyz:write", headers: ["Prefer: wait=1"], upload)
            #expect(shown.status == 200 && shown.text.contains(Self.row(5)))
            #expect(gateway.link.windows.suffix(2).map { $0 != nil } == [true, true])
        }
    }

    /// The outcome is read without rows first, and with them perhaps of another fan-out.
    @Test(arguments: ["/v1/upload", "/v1/sync"])
    func theRowsOfAFanOutThatIsBehindTheOutcomeAreWaitedFor(target: String) async throws {
        try await withGateway { gateway in
            setParts(of: gateway, isRepeat: false)
            gateway.link.holdRowsBehind()
            let answer = try await gateway.exchange(
                "POST", target, links: "xyz:write", headers: ["Prefer: wait=1"], upload)
            #expect(answer.status == 200)
            for index in 0..<6 { #expect(answer.text.contains(Self.row(index))) }
            #expect(!answer.text.contains("rowsFrom"))
        }
    }

    @Test func rowsAndThePageTogetherStayWithinAPage() async throws {
        try await withGateway {
            $0.configuration.pageBytes = 100_000
        } test: { gateway in
            setParts(of: gateway, isRepeat: false)
            gateway.link.setIdle(false)
            let shown = try await gateway.exchange("POST", "/v1/sync", links: "xyz:write", upload)
            #expect(shown.status == 200)
            let rows = (0..<6).reduce(0) { $0 + Self.row($1).utf8.count }
            #expect(gateway.link.pulls.map(\.maximumBytes) == [100_000 - rows])
        }
    }

    @Test func everyPageHasARow() async throws {
        try await withGateway {
            $0.configuration.pageBytes = 1
        } test: { gateway in
            setParts(of: gateway, isRepeat: false)
            var shown: [String] = []
            var next: Int? = 0
            while let from = next {
                let answer = try await gateway.exchange(
                    "GET", "/v1/batches/7?knowledgeId=k1&rowsFrom=\(from)", links: "xyz:write")
                let rows = answer.text.matches(of: /"result":(\d+),"row":{"id":"(r\d)"/)
                #expect(rows.first.map { Int($0.1) } == from)
                shown += rows.map { String($0.2) }
                next = answer.text.firstMatch(of: /"rowsFrom":(\d+)/).flatMap { Int($0.1) }
            }
            #expect(shown == (0..<6).map { "r\($0)" })
        }
    }

    @Test func showsNoRowsOfOwnersThatTheCallerMayNotRead() async throws {
        try await withGateway {
            $0.configuration.pageBytes = 1
        } test: { gateway in
            setParts(of: gateway, isRepeat: true)
            let answer = try await gateway.exchange("GET", "/v1/batches/7?knowledgeId=k1&rowsFrom=0")
            #expect(
                answer.text == #"{"batch":{"batch":7,"rows":[{"result":0,"row":\#(Self.row(0))}],"rowsFrom":2}}"#)
            #expect(gateway.link.windows == [RowWindow(maximumBytes: 1), nil])
        }
    }

    @Test func aBatchWithoutANumberHasNoFurtherRows() async throws {
        try await withGateway {
            $0.configuration.pageBytes = 1
        } test: { gateway in
            setParts(of: gateway, isRepeat: false)
            let answer = try await gateway.exchange(
                "POST", "/v1/upload", links: "xyz:write", headers: ["Prefer: wait=1"],
                #"{"knowledgeId":"k1","changes":[1,2,3,4,5,6]}"#)
            #expect(
                answer.text == #"{"batch":{"results":[{"status":"conflict","row":\#(Self.row(0))},"#
                    + #"{"status":"conflict"},{"status":"conflict"},{"status":"conflict"},"#
                    + #"{"status":"conflict"},{"status":"conflict"}]}}"#)
        }
    }

    /// The memory of one response does not grow with the owners of a batch.
    @Test func largeRowsOfManyOwnersStayWithinAPage() async throws {
        try await withGateway {
            $0.configuration.pageBytes = 2500
        } test: { gateway in
            let owners = (1...9).map { SyncID(unchecked: "o\($0)") }
            let large = #"{"pad":""# + String(repeating: "x", count: 2000) + #""}"#
            gateway.link.set(
                .results(
                    [(0, .conflict, nil)], summary: BatchSummary(changeCount: 10, otherOwners: owners),
                    rows: [0: large]), ofPart: 0)
            for index in 1...9 {
                gateway.link.set(.results([(index, .conflict, nil)], rows: [index: large]), ofPart: index)
            }
            let answer = try await gateway.exchange(
                "POST", "/v1/upload", links: owners.map { "\($0.text):write" }.joined(separator: ","),
                headers: ["Prefer: wait=1"],
                #"{"knowledgeId":"k1","batch":7,"changes":[0,1,2,3,4,5,6,7,8,9]}"#)
            #expect(answer.status == 200)
            #expect(answer.text.utf8.count < 3000)
            #expect(answer.text.hasSuffix(#","rowsFrom":1}}"#))
        }
    }

    @Test func theOutcomesOfAPullAreReadWithoutRows() async throws {
        try await withGateway { gateway in
            setParts(of: gateway, isRepeat: true)
            let pull = try await gateway.exchange(
                "POST", "/v1/pull", links: "xyz:write", #"{"knowledgeId":"k1","include":[7]}"#)
            #expect(pull.status == 200)
            #expect(gateway.link.windows == [nil, nil])
        }
    }

    @Test(arguments: ["", "-1", "+1", "x", "1.0", "2147483648", "1&rowsFrom=2"])
    func refusesAnIndexThatIsNone(index: String) async throws {
        try await withGateway { gateway in
            let answer = try await gateway.exchange("GET", "/v1/batches/7?knowledgeId=k1&rowsFrom=\(index)")
            #expect(answer.status == 422)
            #expect(answer.text.contains("rowsFrom must be the index of a change"))
        }
    }
}
