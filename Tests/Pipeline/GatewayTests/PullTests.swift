import FanOutLink
import Gateway
import HTTP
import SyncModel
import TestSignals
import Testing

@Suite(.timeLimit(.minutes(5))) struct PullTests {
    @Test func respondsToAnIdlePullFromMemory() async throws {
        try await withGateway { gateway in
            let answer = try await gateway.exchange(
                "POST", "/v1/pull", #"{"knowledgeId":"k1","knowledge":[\#(entry("k1", 0)),\#(entry("k2", 7))]}"#)
            #expect(answer.status == 200)
            #expect(answer["content-type"] == "application/json")
            #expect(
                answer.text == answerHead + #""changes":[],"knowledge":[\#(entry("k1", 0)),\#(entry("k2", 7))],"#
                    + nothingMore)
            #expect(gateway.link.pulls.isEmpty)
        }
    }

    @Test func sendsTheRowsOwnerByOwner() async throws {
        try await withGateway { gateway in
            gateway.link.set(.rows([#"{"id":"a"}"#, #"{"id":"b"}"#], [(.k1, 5)], head: 5), of: .abc)
            gateway.link.set(.rows([#"{"id":"c"}"#], [(.k2, 9)], head: 9, hasMore: true), of: .xyz)
            let answer = try await gateway.exchange(
                "POST", "/v1/sync", links: "xyz:read",
                #"{"knowledgeId":"k1","knowledge":[\#(entry("k1", 2, "xyz"))],"limit":3}"#)
            #expect(
                answer.text == #"{"syncId":"abc","epoch":"e1","schemaVersion":"\#(TestGateway.version)","#
                    + #""owners":[{"syncId":"abc","access":"write"},{"syncId":"xyz","access":"read"}],"#
                    + #""changes":[{"id":"a"},{"id":"b"},{"id":"c"}],"#
                    + #""knowledge":[\#(entry("k1", 5)),\#(entry("k1", 2, "xyz")),\#(entry("k2", 9, "xyz"))],"#
                    + #""hasMore":true,"revoked":[],"resync":[],"cutFrom":[{"syncId":"xyz","head":9}]}"#)
            let pull = try #require(gateway.link.pulls.first)
            #expect(pull.limit == 3)
            #expect(pull.maximumBytes == 4 << 20)
            #expect(
                pull.owners == [
                    OwnerPull(owner: .abc, knowledge: OwnerKnowledge(), maximumEntries: 1000),
                    OwnerPull(
                        owner: .xyz, knowledge: OwnerKnowledge(entries: [.k1: TimeStamp(2)]), maximumEntries: 1000),
                ])
        }
    }

    /// A device that names a version would have its columns refused under an older one.
    @Test func takesNoDeviceBackToAnOlderSchemaVersion() async throws {
        try await withGateway {
            $0.schemas = { TestGateway.olderSchemas }
        } test: { gateway in
            for (path, epoch, named, answered) in [
                ("/v1/pull", "e1", TestGateway.version, TestGateway.version),
                ("/v1/sync", "e1", TestGateway.version, TestGateway.version),
                ("/v1/pull", "e1", TestGateway.oldVersion, TestGateway.oldVersion),
                ("/v1/pull", "e1", "a version of nobody", TestGateway.oldVersion),
                ("/v1/pull", "e2", TestGateway.version, TestGateway.oldVersion),
            ] {
                let answer = try await gateway.exchange(
                    "POST", path, #"{"knowledgeId":"k1","epoch":"\#(epoch)","schemaVersion":"\#(named)"}"#)
                #expect(answer.status == 200)
                #expect(answer.text.contains(#""schemaVersion":"\#(answered)""#))
            }
        }
    }

    @Test func keepsTheEntriesOfOwnersAfterTheEndOfACutPage() async throws {
        try await withGateway { gateway in
            gateway.link.set(.rows([#"{"id":"a"}"#], [(.k1, 5)], head: 9), of: .abc)
            gateway.link.cutPages(at: 1)
            for compact in [false, true] {
                let answer = try await gateway.exchange(
                    "POST", "/v1/pull", links: "xyz:read",
                    #"{"knowledgeId":"k1","compact":\#(compact),"knowledge":["#
                        + #"\#(entry("k2", 8, "xyz")),\#(entry("*", 3, "xyz")),\#(entry("k1", 2, "xyz"))]}"#)
                let own = compact ? entry("*", 9) : entry("k1", 5)
                #expect(
                    answer.text.contains(
                        #""knowledge":[\#(own),\#(entry("k1", 2, "xyz")),\#(entry("k2", 8, "xyz")),\#(entry("*", 3, "xyz"))],"#
                            + #""hasMore":true"#), "\(answer.text)")
            }
        }
    }

    @Test func namesTheHeadsThatPagesWereCutFrom() async throws {
        try await withGateway { gateway in
            gateway.link.set(.rows([#"{"id":"a"}"#], [(.k1, 5)], head: 9, hasMore: true), of: .abc)
            gateway.link.set(.rows(head: 30, hasMore: true), of: .xyz)
            let body =
                #"{"knowledgeId":"k1","knowledge":[\#(entry("k1", 4))],"#
                + #""cutFrom":[{"syncId":"xyz","head":20},{"syncId":"abc","head":7,"x":0},{"syncId":"abc","head":3}]}"#
            let cut = try await gateway.exchange("POST", "/v1/pull", links: "xyz:read,new:read", body)
            // A page without rows of an owner leaves the vector as it was: so does it what the vector needs.
            #expect(
                cut.text.hasSuffix(
                    #""hasMore":true,"revoked":[],"resync":[],"cutFrom":[{"syncId":"abc","head":9},{"syncId":"xyz","head":20}]}"#
                ), "\(cut.text)")
            let asked = try #require(gateway.link.pulls.first).owners.map(\.knowledge)
            #expect(
                asked == [
                    OwnerKnowledge(entries: [.k1: TimeStamp(4)], cutFrom: TimeStamp(7)),
                    OwnerKnowledge(cutFrom: TimeStamp(20)), OwnerKnowledge(),
                ])
            // Owners that the page does not come to.
            gateway.link.cutPages(at: 1)
            let unread = try await gateway.exchange("POST", "/v1/pull", links: "xyz:read", body)
            #expect(
                unread.text.hasSuffix(#""cutFrom":[{"syncId":"abc","head":9},{"syncId":"xyz","head":20}]}"#),
                "\(unread.text)")
        }
    }

    @Test func namesNoHeadOfADrainedOwner() async throws {
        try await withGateway { gateway in
            gateway.link.set(.rows([#"{"id":"a"}"#], [(.k1, 9)], head: 9), of: .abc)
            let answer = try await gateway.exchange(
                "POST", "/v1/sync", #"{"knowledgeId":"k1","knowledge":[],"cutFrom":[{"syncId":"abc","head":7}]}"#)
            #expect(answer.text.hasSuffix(#""hasMore":false,"revoked":[],"resync":[]}"#), "\(answer.text)")
        }
    }

    @Test func echoesFloorsAndZeros() async throws {
        try await withGateway { gateway in
            gateway.link.set(.rows([#"{"id":"a"}"#], [(.k2, 30)], head: 30), of: .abc)
            let answer = try await gateway.exchange(
                "POST", "/v1/pull", #"{"knowledgeId":"k1","knowledge":[\#(entry("*", 20)),\#(entry("k1", 0))]}"#)
            #expect(answer.text.contains(#""knowledge":[\#(entry("k1", 0)),\#(entry("k2", 30)),\#(entry("*", 20))]"#))
            #expect(
                gateway.link.pulls.first?.owners.first?.knowledge
                    == OwnerKnowledge(floor: TimeStamp(20), entries: [.k1: .zero]))
        }
    }

    @Test func sendsADrainedOwnersKnowledgeAsOneFloorIfRequested() async throws {
        try await withGateway { gateway in
            gateway.link.set(.rows([#"{"id":"a"}"#], [(.k1, 5)], head: 9), of: .abc)
            gateway.link.set(.rows([#"{"id":"b"}"#], [(.k2, 4)], head: 8, hasMore: true), of: .xyz)
            let answer = try await gateway.exchange(
                "POST", "/v1/pull", links: "xyz:read,new:read",
                #"{"knowledgeId":"k1","compact":true,"knowledge":[\#(entry("*", 2)),\#(entry("*", 1, "xyz"))]}"#)
            #expect(
                answer.text.contains(
                    #""knowledge":[\#(entry("*", 9)),\#(entry("k2", 4, "xyz")),\#(entry("*", 1, "xyz")),\#(entry("*", 0, "new"))]"#
                ),
                "\(answer.text)")
        }
    }

    @Test func aFloorOfTheFanOutReplacesThatOfTheRequest() async throws {
        try await withGateway { gateway in
            gateway.link.set(.rows([#"{"id":"a"}"#], [(.k1, 7)], floor: 6, head: 9, hasMore: true), of: .abc)
            for (compact, maximum) in [(false, 1000), (true, 0)] {
                let answer = try await gateway.exchange(
                    "POST", "/v1/pull",
                    #"{"knowledgeId":"k1","compact":\#(compact),"knowledge":[\#(entry("*", 3)),\#(entry("k1", 7))]}"#)
                #expect(answer.text.contains(#""knowledge":[\#(entry("k1", 7)),\#(entry("*", 6))]"#), "\(answer.text)")
                #expect(gateway.link.pulls.last?.owners.map(\.maximumEntries) == [maximum])
            }
        }
    }

    @Test func aCompactVectorIsNeverLower() async throws {
        try await withGateway { gateway in
            gateway.link.set(.rows(head: 5), of: .abc)
            let answer = try await gateway.exchange(
                "POST", "/v1/pull",
                #"{"knowledgeId":"k1","compact":true,"knowledge":[\#(entry("k1", 7)),\#(entry("*", 6))]}"#)
            #expect(answer.text.contains(#""knowledge":[\#(entry("*", 7))]"#))
        }
    }

    @Test func namesOwnersThatAreNotGranted() async throws {
        try await withGateway { gateway in
            let answer = try await gateway.exchange(
                "POST", "/v1/pull", links: "xyz:read",
                #"{"knowledgeId":"k1","knowledge":["#
                    + [entry("k1", 1, "z"), entry("k1", 1, "xyz"), entry("k2", 1, "z"), entry("*", 1, "b")]
                    .joined(separator: ",") + "]}")
            #expect(
                answer.text.hasSuffix(
                    #""knowledge":[\#(entry("k1", 1, "xyz"))],"hasMore":false,"revoked":["b","z"],"resync":[]}"#),
                "\(answer.text)")
        }
    }

    @Test func comparesOwnersByteByByte() async throws {
        try await withGateway { gateway in
            // é in one scalar, and e with an accent: one text for people, two ids.
            let answer = try await gateway.exchange(
                "POST", "/v1/pull", as: "%C3%A9", #"{"knowledgeId":"k1","knowledge":[\#(entry("k1", 1, "e\u{301}"))]}"#)
            #expect(answer.text.hasSuffix("\"revoked\":[\"e\u{301}\"],\"resync\":[]}"))
        }
    }

    @Test func requestsAResyncIfTheLogIsBehindTheVector() async throws {
        try await withGateway { gateway in
            gateway.link.setHistoryChanged(.xyz)
            gateway.link.set(.rows([#"{"id":"a"}"#], [(.k1, 5)], head: 5), of: .abc)
            let answer = try await gateway.exchange(
                "POST", "/v1/pull", links: "xyz:read", #"{"knowledgeId":"k1","knowledge":[\#(entry("k1", 99, "xyz"))]}"#
            )
            #expect(
                answer.text.hasSuffix(
                    #""changes":[{"id":"a"}],"knowledge":[\#(entry("k1", 5))],"hasMore":false,"revoked":[],"#
                        + #""resync":[{"syncId":"xyz","reason":"history_changed"}]}"#))
        }
    }

    @Test(arguments: ["/v1/pull", "/v1/sync"])
    func beginsAnewUnderAnotherEpoch(target: String) async throws {
        try await withGateway { gateway in
            gateway.link.set(.rows([#"{"id":"x"}"#], [(.k1, 5)], head: 5), of: .xyz)
            gateway.link.set(.rows([#"{"id":"never"}"#], [(.k1, 5)], head: 5), of: .abc)
            let answer = try await gateway.exchange(
                "POST", target, links: "xyz:read,q:read",
                #"{"knowledgeId":"k1","epoch":"old","knowledge":[\#(entry("k1", 3, "q")),\#(entry("k1", 3)),\#(entry("k1", 3, "gone"))]}"#
            )
            #expect(
                answer.text.hasSuffix(
                    #""changes":[{"id":"x"}],"knowledge":[\#(entry("k1", 5, "xyz"))],"hasMore":false,"revoked":["gone"],"#
                        + #""resync":[{"syncId":"abc","reason":"history_changed"},{"syncId":"q","reason":"history_changed"}]}"#
                ),
                "\(answer.text)")
            #expect(gateway.link.pulls.map { $0.owners.map(\.owner) } == [[.xyz]])
        }
    }

    @Test func refusesTheBatchAndPullsUnderAnotherEpoch() async throws {
        try await withGateway { gateway in
            let answer = try await gateway.exchange(
                "POST", "/v1/sync",
                #"{"knowledgeId":"k1","epoch":"old","batch":4,"changes":[{}],"knowledge":[\#(entry("k1", 3))]}"#)
            #expect(answer.text.hasPrefix(answerHead + #""batch":{"batch":4,"refused":{"code":"history_changed""#))
            #expect(
                answer.text.hasSuffix(
                    #""changes":[],"knowledge":[],"hasMore":false,"revoked":[],"resync":[{"syncId":"abc","reason":"history_changed"}]}"#
                ))
            #expect(gateway.log.records.isEmpty)
        }
    }

    @Test func uploadsWaitsAndPullsInOneRequest() async throws {
        try await withGateway { gateway in
            gateway.link.set(.results([(0, .applied(102), nil)], summary: BatchSummary(changeCount: 1)), ofPart: 0)
            gateway.link.set(.rows([#"{"id":"b"}"#], [(.k1, 102), (.k2, 103)], head: 103), of: .abc)
            let answer = try await gateway.exchange(
                "POST", "/v1/sync",
                #"{"knowledgeId":"k1","epoch":"e1","batch":7,"changes":[{"a":1}],"knowledge":[\#(entry("k1", 0))]}"#)
            #expect(
                answer.text == answerHead
                    + #""batch":{"batch":7,"results":[{"status":"applied","timeStamp":102,"version":1,"knowledgeId":"k1"}]},"#
                    + #""changes":[{"id":"b"}],"knowledge":[\#(entry("k1", 102)),\#(entry("k2", 103))],"# + nothingMore)
            #expect(try gateway.batches.map(\.changes) == [Array(#"[{"a":1}]"#.utf8)])
        }
    }

    @Test func hasNoBatchObjectWithoutABatch() async throws {
        try await withGateway { gateway in
            let none = try await gateway.exchange("POST", "/v1/sync", #"{"knowledgeId":"k1"}"#)
            #expect(none.text == answerHead + #""changes":[],"knowledge":[],"# + nothingMore)
            let empty = try await gateway.exchange("POST", "/v1/sync", #"{"knowledgeId":"k1","changes":[]}"#)
            #expect(empty.text == answerHead + #""batch":{"results":[]},"changes":[],"knowledge":[],"# + nothingMore)
            #expect(gateway.log.records.isEmpty)
            gateway.link.set(.results([], summary: BatchSummary(changeCount: 0)), ofPart: 0)
            let numbered = try await gateway.exchange("POST", "/v1/sync", #"{"knowledgeId":"k1","batch":9}"#)
            #expect(
                numbered.text == answerHead + #""batch":{"batch":9,"results":[]},"changes":[],"knowledge":[],"#
                    + nothingMore)
            #expect(gateway.log.records.count == 1)
        }
    }

    @Test func waitsForTheBatchesToInclude() async throws {
        try await withGateway { gateway in
            let body = #"{"knowledgeId":"k1","include":[3,4]}"#
            let three = PartOutcome.results([(0, .applied(1), nil)], summary: BatchSummary(changeCount: 1))
            gateway.link.keep(three, of: 3, with: .abc)
            let pending = try await gateway.exchange("POST", "/v1/pull", body)
            #expect(pending.status == 504)
            #expect(pending.text.contains(#""code":"outcome_pending""#))
            #expect(gateway.link.pulls.isEmpty)
            gateway.link.keep(.results([], summary: BatchSummary(changeCount: 0)), of: 4, with: .abc)
            let covered = try await gateway.exchange("POST", "/v1/pull", body)
            #expect(covered.status == 200)
            // The pull of a stream that is not behind does not wait.
            #expect(gateway.link.withins.dropLast().allSatisfy { $0 == .seconds(10) })
            #expect(gateway.link.withins.last == .zero)
        }
    }

    @Test func aPullThatWaitsForItsStreamHoldsNoShareOfTheResponses() async throws {
        try await withGateway {
            $0.configuration.server.maxAnswerBytesInFlight = 1 << 20
            $0.configuration.pageBytes = 1 << 20
        } test: { gateway in
            gateway.link.setIdle(false)
            gateway.link.holdStream(of: .abc)
            let waiting = try HTTPClient(port: gateway.port)
            try await waiting.send(
                "POST", "/v1/pull", headers: TestGateway.headers("abc"), body: Array(#"{"knowledgeId":"k1"}"#.utf8))
            _ = await gateway.link.pullsAsked.next()
            let other = try await gateway.exchange("POST", "/v1/pull", as: "xyz", #"{"knowledgeId":"k1"}"#)
            #expect(other.status == 200)
            gateway.link.releaseStream(of: .abc)
            #expect(try await waiting.answer().status == 200)
            #expect(gateway.link.withins.last == .seconds(10))
        }
    }

    @Test func isNotReadyIfAStreamIsNot() async throws {
        try await withGateway { gateway in
            gateway.link.setIdle(false)
            for (error, detail) in [
                (FanOutError.notReady("the stream is behind"), "the stream is behind"),
                (.closed, "the server is stopping"),
            ] {
                gateway.link.failPulls(error)
                for target in ["/v1/pull", "/v1/sync"] {
                    let answer = try await gateway.exchange("POST", target, #"{"knowledgeId":"k1"}"#)
                    #expect(answer.status == 503)
                    #expect(answer["retry-after"] == "1")
                    #expect(answer.text.contains(#""code":"not_ready","detail":"\#(detail)""#))
                }
            }
        }
    }
}
