import FanOutLink
import Gateway
import SyncModel
import TestClocks
import TestSignals
import Testing

@Suite(.timeLimit(.minutes(5))) struct OutcomeTests {
    @Test func mergesThePartsOfAllOwnersInTheRequestsOrder() async throws {
        try await withGateway { gateway in
            let q = SyncID(unchecked: "q")
            gateway.link.set(
                .results(
                    [(1, .applied(10), nil), (5, .conflict, nil)],
                    summary: BatchSummary(
                        changeCount: 7, otherOwners: [.xyz, q],
                        refusals: [
                            Refusal(index: 2, code: .unknownTable, message: "no \"t\""),
                            Refusal(index: 6, code: .notGranted, message: "m"),
                        ]), rows: [5: #"{"id":"mine"}"#]), ofPart: 0)
            gateway.link.set(
                .results(
                    [(0, .deleted(timeStamp: TimeStamp(20), version: 3, knowledgeID: .k2), nil), (4, .conflict, nil)],
                    rows: [4: #"{"id":"theirs"}"#]), ofPart: 1)
            gateway.link.set(.results([(3, .refused(.rowGone, message: "gone"), nil)]), ofPart: 2)
            let answer = try await gateway.exchange(
                "POST", "/v1/upload", links: "q:write,xyz:write", headers: ["Prefer: wait=1"],
                #"{"knowledgeId":"k1","batch":7,"changes":[1,2,3,4,5,6,7]}"#)
            #expect(
                answer.text == #"{"batch":{"batch":7,"results":["#
                    + #"{"status":"deleted","timeStamp":20,"version":3,"knowledgeId":"k2"},"#
                    + #"{"status":"applied","timeStamp":10,"version":1,"knowledgeId":"k1"},"#
                    + #"{"status":"refused","code":"unknown_table","message":"no \"t\"","row":null},"#
                    + #"{"status":"refused","code":"row_gone","message":"gone","row":null},"#
                    + #"{"status":"conflict","row":{"id":"theirs"}},"# + #"{"status":"conflict","row":{"id":"mine"}},"#
                    + #"{"status":"refused","code":"not_granted","message":"m","row":null}]}}"#)
            let device = Device(caller: .abc, knowledgeID: .k1)
            let upload = UploadReference(partition: Partitioning(count: 4).partition(of: .abc), offset: 0)
            let parts = [SyncID.abc, .xyz, q].enumerated().map {
                PartReference(upload: upload, part: $0, key: DeviceKey(owner: $1, device: device), batch: 7)
            }
            // Without rows first, then with those of the owners that may be read, once their size is reserved.
            #expect(gateway.link.asked == parts + parts)
            #expect(gateway.link.windows.map { $0 != nil } == [false, false, false, true, true, true])
        }
    }

    /// A page of a stream that is behind the outcome's would have older rows, and could be called drained.
    @Test func pullsFromStreamsThatHaveWhatTheOutcomeShows() async throws {
        try await withGateway { gateway in
            let summary = BatchSummary(changeCount: 2, otherOwners: [.xyz])
            gateway.link.set(.results([(0, .conflict, nil)], summary: summary, head: 30), ofPart: 0)
            gateway.link.set(.results([(1, .applied(20), nil)], head: 40), ofPart: 1)
            let sync = try await gateway.exchange(
                "POST", "/v1/sync", links: "xyz:write", #"{"knowledgeId":"k1","batch":7,"changes":[1,2]}"#)
            #expect(sync.status == 200)
            gateway.link.keep(.results([(0, .applied(50), nil)], head: 50), of: 8, with: .abc)
            gateway.link.keep(.results([(0, .applied(45), nil)], head: 45), of: 9, with: .abc)
            let pull = try await gateway.exchange(
                "POST", "/v1/pull", links: "xyz:write", #"{"knowledgeId":"k1","include":[8,9]}"#)
            #expect(pull.status == 200)
            #expect(
                gateway.link.pulls.map { $0.owners.map(\.leastHead) } == [
                    [TimeStamp(30), TimeStamp(40)], [TimeStamp(50), .zero],
                ])
        }
    }

    /// The results are as new as those streams; rows of a later page must not be older, also of owners that a cut page has no
    /// rows of.
    @Test func aCutPageNamesTheHeadsOfTheOutcomeForOwnersWithoutRows() async throws {
        try await withGateway { gateway in
            let summary = BatchSummary(changeCount: 2, otherOwners: [.xyz])
            gateway.link.set(.results([(0, .applied(20), nil)], summary: summary, head: 30), ofPart: 0)
            gateway.link.set(.results([(1, .applied(25), nil)], head: 40), ofPart: 1)
            gateway.link.set(.rows([#"{"id":"a"}"#], [(.k1, 5)], head: 35, hasMore: true), of: .abc)
            gateway.link.set(.rows(head: 45, hasMore: true), of: .xyz)
            func cutFrom(_ fields: String = "") async throws -> String {
                let answer = try await gateway.exchange(
                    "POST", "/v1/sync", links: "xyz:write", #"{"knowledgeId":"k1","batch":7,"changes":[1,2]\#(fields)}"#
                )
                return String(answer.text.drop { $0 != "]" }.split(separator: #""resync":[],"#).last ?? "")
            }
            let both = #""cutFrom":[{"syncId":"abc","head":35},{"syncId":"xyz","head":40}]}"#
            let first = try await cutFrom()
            #expect(first == both)
            // Owners that the page does not come to.
            gateway.link.cutPages(at: 1)
            let unread = try await cutFrom()
            #expect(unread == both)
            // The device has named a newer head.
            let newer = try await cutFrom(#","cutFrom":[{"syncId":"xyz","head":60}]"#)
            #expect(newer == #""cutFrom":[{"syncId":"abc","head":35},{"syncId":"xyz","head":60}]}"#)
            // Its vector is as far.
            let known = try await cutFrom(#","knowledge":[\#(entry("k2", 40, "xyz"))]"#)
            #expect(known == #""cutFrom":[{"syncId":"abc","head":35}]}"#)
        }
    }

    @Test func writesZerosAndNullForADeleteOfAnAbsentRow() async throws {
        try await withGateway { gateway in
            gateway.link.set(
                .results(
                    [(0, .applied(timeStamp: .zero, version: 0, knowledgeID: nil), nil)],
                    summary: BatchSummary(changeCount: 1)), ofPart: 0)
            let answer = try await gateway.exchange(
                "POST", "/v1/upload", headers: ["Prefer: wait=1"], #"{"knowledgeId":"k1","changes":[{}]}"#)
            #expect(
                answer.text
                    == #"{"batch":{"results":[{"status":"applied","timeStamp":0,"version":0,"knowledgeId":null}]}}"#)
        }
    }

    @Test(arguments: BatchRefusal.allCases) func returnsTheRefusalOfABatch(refusal: BatchRefusal) async throws {
        try await withGateway { gateway in
            gateway.link.set(PartOutcome(refusal: refusal), ofPart: 0)
            let sync = try await gateway.exchange("POST", "/v1/sync", #"{"knowledgeId":"k1","batch":7,"changes":[{}]}"#)
            #expect(sync.status == 200)
            #expect(
                sync.text.hasPrefix(
                    answerHead + #""batch":{"batch":7,"refused":{"code":"\#(refusal.rawValue)","message":""#))
            #expect(sync.text.hasSuffix(#""}},"changes":[],"knowledge":[],"# + nothingMore))
        }
    }

    @Test func omitsRowsOfAnOwnerThatIsNoLongerGranted() async throws {
        try await withGateway { gateway in
            let summary = BatchSummary(changeCount: 2, otherOwners: [.xyz])
            let own = PartOutcome.results(
                [(0, .conflict, nil)], summary: summary, isRepeat: true, rows: [0: #"{"a":1}"#])
            gateway.link.set(own, ofPart: 0)
            gateway.link.keep(
                .results([(1, .conflict, nil)], isRepeat: true, rows: [1: #"{"b":2}"#]), of: 7, with: .xyz)
            for (links, row) in [(nil, "null"), ("xyz:read", #"{"b":2}"#)] as [(String?, String)] {
                let answer = try await gateway.exchange(
                    "POST", "/v1/upload", links: links, headers: ["Prefer: wait=1"],
                    #"{"knowledgeId":"k1","batch":7,"changes":[1,2]}"#)
                #expect(
                    answer.text
                        == #"{"batch":{"batch":7,"results":[{"status":"conflict","row":{"a":1}},{"status":"conflict","row":\#(row)}]}}"#
                )
            }
            // A repeat may number its parts otherwise: the others are found by the batch's number.
            #expect(gateway.link.asked.map(\.part) == [0, 0, 0, 0])
        }
    }

    @Test func isPendingUntilEveryOwnersPartIsOrdered() async throws {
        try await withGateway { gateway in
            let summary = BatchSummary(changeCount: 2, otherOwners: [.xyz])
            let body = #"{"knowledgeId":"k1","batch":7,"changes":[1,2]}"#
            for isRepeat in [false, true] {
                gateway.link.set(.results([(0, .applied(1), nil)], summary: summary, isRepeat: isRepeat), ofPart: 0)
                let answer = try await gateway.exchange("POST", "/v1/sync", links: "xyz:write", body)
                #expect(answer.status == 504)
            }
            gateway.link.set(.results([(1, .applied(2), nil)]), ofPart: 1)
            gateway.link.set(.results([(0, .applied(1), nil)], summary: summary), ofPart: 0)
            #expect(try await gateway.exchange("POST", "/v1/sync", links: "xyz:write", body).status == 200)
        }
    }

    @Test func respondsWithAResultForEveryChange() async throws {
        try await withGateway { gateway in
            gateway.link.set(.results([(0, .applied(1), nil)], summary: BatchSummary(changeCount: 2)), ofPart: 0)
            let answer = try await gateway.exchange(
                "POST", "/v1/sync", #"{"knowledgeId":"k1","batch":7,"changes":[1,2]}"#)
            #expect(answer.status == 504)
        }
    }

    @Test func endsWhenTheWaitForAllPartsIsOver() async throws {
        try await withGateway {
            $0.configuration.outcomeWait = .seconds(3)
        } test: { gateway in
            let summary = BatchSummary(changeCount: 2, otherOwners: [.xyz])
            gateway.link.set(.results([(0, .applied(1), nil)], summary: summary), ofPart: 0)
            gateway.link.holdOutcomes()
            let client = try HTTPClient(port: gateway.port)
            try await client.send(
                "POST", "/v1/sync", headers: TestGateway.headers("abc", "xyz:write"),
                body: Array(#"{"knowledgeId":"k1","batch":7,"changes":[1,2]}"#.utf8))
            _ = await gateway.link.outcomesAsked.next()
            gateway.clock.advance(by: .seconds(2))
            gateway.link.releaseOutcomes()
            #expect(try await client.answer().status == 504)
            #expect(gateway.link.withins == [.seconds(3), .seconds(1)])
        }
    }

    /// One change of the caller's row, as the table of I6 has it.
    struct Held: Sendable {
        let status: ChangeResult.Status
        let heldFrom: Int64?
        let knowledge: String
        let isHeld: Bool
    }

    @Test(arguments: [
        // Written whole: held whatever the vector says.
        Held(status: .applied(50), heldFrom: 0, knowledge: "", isHeld: true),
        // On a version that the vector covers, exactly and beyond.
        Held(status: .applied(50), heldFrom: 40, knowledge: entry("k1", 40), isHeld: true),
        Held(status: .applied(50), heldFrom: 40, knowledge: entry("k1", 45), isHeld: true),
        // On one that it does not cover.
        Held(status: .applied(50), heldFrom: 40, knowledge: entry("k1", 39), isHeld: false),
        Held(status: .applied(50), heldFrom: 40, knowledge: "", isHeld: false),
        // The entry of the row's creator counts, not the device's own.
        Held(status: .applied(50, .k2), heldFrom: 40, knowledge: entry("k1", 45), isHeld: false),
        Held(status: .applied(50, .k2), heldFrom: 40, knowledge: entry("k2", 40), isHeld: true),
        // A floor counts where the creator is not named, and only there.
        Held(status: .applied(50), heldFrom: 40, knowledge: entry("*", 40), isHeld: true),
        Held(status: .applied(50), heldFrom: 40, knowledge: entry("*", 40) + "," + entry("k1", 1), isHeld: false),
        // Another owner's entry does not.
        Held(status: .applied(50), heldFrom: 40, knowledge: entry("k1", 45, "xyz"), isHeld: false),
        // A value was altered: held in no case.
        Held(status: .applied(50), heldFrom: nil, knowledge: entry("k1", 45), isHeld: false),
        // Values stored in a tombstone.
        Held(
            status: .deleted(timeStamp: TimeStamp(50), version: 2, knowledgeID: .k1), heldFrom: 40,
            knowledge: entry("k1", 40), isHeld: true),
        // Nothing was written.
        Held(status: .conflict, heldFrom: nil, knowledge: entry("k1", 45), isHeld: false),
        Held(
            status: .applied(timeStamp: .zero, version: 0, knowledgeID: nil), heldFrom: 0, knowledge: "", isHeld: false),
    ])
    func leavesOutOfThePullWhatTheDeviceHolds(case held: Held) async throws {
        try await withGateway { gateway in
            gateway.link.setIdle(false)
            let request = #"{"knowledgeId":"k1","batch":7,"changes":[{}],"knowledge":[\#(held.knowledge)]}"#
            let summary = BatchSummary(changeCount: 1)
            let results = [(0, held.status, held.heldFrom)]
            gateway.link.set(.results(results, summary: summary), ofPart: 0)
            let first = try await gateway.exchange("POST", "/v1/sync", links: "xyz:write", request)
            #expect(first.status == 200)
            #expect(gateway.link.pulls.map { $0.owners.map(\.held) } == [[held.isHeld ? [TimeStamp(50)] : [], []]])
            // A repeat leaves nothing out.
            gateway.link.set(.results(results, summary: summary, isRepeat: true), ofPart: 0)
            let again = try await gateway.exchange("POST", "/v1/sync", links: "xyz:write", request)
            #expect(again.status == 200)
            #expect(gateway.link.pulls.last?.owners.map(\.held) == [[], []])
        }
    }

    @Test func leavesOutRowsOfTheOwnerTheyBelongTo() async throws {
        try await withGateway { gateway in
            gateway.link.setIdle(false)
            let summary = BatchSummary(changeCount: 2, otherOwners: [.xyz])
            gateway.link.set(.results([(1, .applied(51), 0)], summary: summary), ofPart: 0)
            gateway.link.set(.results([(0, .applied(50), 30)]), ofPart: 1)
            let answer = try await gateway.exchange(
                "POST", "/v1/sync", links: "xyz:write",
                #"{"knowledgeId":"k1","changes":[1,2],"knowledge":[\#(entry("k1", 30, "xyz"))]}"#)
            #expect(answer.status == 200)
            #expect(gateway.link.pulls.map { $0.owners.map(\.held) } == [[[TimeStamp(51)], [TimeStamp(50)]]])
        }
    }
}

/// An entry of a vector in JSON.
func entry(_ device: String, _ timeStamp: Int64, _ owner: String = "abc") -> String {
    #"{"syncId":"\#(owner)","knowledgeId":"\#(device)","lastTimeStamp":\#(timeStamp)}"#
}
