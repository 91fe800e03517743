import DeviceModel
import SyncModel
import Testing

@testable import Chaos

/// The pages that one device gets.
struct PageJudgeTests {
    private typealias Vector = PageJudge.Vector

    private func vector(_ timeStamp: Int64, _ device: String = "k1") -> Vector { [Sample.owner: [device: timeStamp]] }

    private func judge(
        _ pages: [Answer], before: Vector = [:], after: Vector = [:], covering: [PageJudge.Written] = []
    ) -> [Finding.Kind] {
        var judge = PageJudge("anna/k1", granted: [Sample.owner, Sample.other])
        return pages.flatMap { judge.judge($0, before: before, after: after, covering: covering) }.map(\.kind)
    }

    private let written = PageJudge.Written(
        owner: Sample.owner, table: "note", id: "r0", knowledgeID: "k1", timeStamp: 100)

    @Test func rowsInOrderAreRight() throws {
        let pages = [
            try Sample.page([("anna", "r0", 100), ("anna", "r1", 101), ("berta", "r0", 7)]),
            try Sample.page([("anna", "r0", 102)]),
        ]
        #expect(judge(pages).isEmpty)
    }

    @Test func anOlderRowAfterANewerOneIsFound() throws {
        #expect(
            judge([try Sample.page([("anna", "r0", 100)]), try Sample.page([("anna", "r0", 99)])]) == [.olderRow])
    }

    /// The page of an answer with results comes from a stream that has them.
    @Test func anOlderRowThanTheAnswersOwnResultIsFound() throws {
        let page = try Sample.page([("anna", "r0", 99)], hasMore: true)
        #expect(judge([page], after: vector(100), covering: [written]) == [.olderRow])
    }

    @Test func rowsOutOfOrderAreFound() throws {
        #expect(judge([try Sample.page([("anna", "r0", 100), ("anna", "r1", 100)])]) == [.order])
    }

    @Test func aDrainedAnswerBelowTheBatchsResultsIsFound() throws {
        let drained = try Sample.page([])
        #expect(judge([drained], after: vector(99), covering: [written]) == [.wrongDrained])
        #expect(judge([drained], after: [:], covering: [written]) == [.wrongDrained])
        #expect(judge([drained], after: vector(500, "k2"), covering: [written]) == [.wrongDrained])
    }

    @Test func aDrainedAnswerThatCoversTheResultsIsRight() throws {
        let drained = try Sample.page([])
        #expect(judge([drained], after: vector(100), covering: [written]).isEmpty)
        #expect(judge([drained], after: vector(100, "*"), covering: [written]).isEmpty)
        #expect(judge([try Sample.page([], hasMore: true)], after: vector(99), covering: [written]).isEmpty)
    }

    @Test func anEntryThatFallsIsFound() throws {
        let page = try Sample.page([])
        #expect(judge([page], before: vector(100), after: vector(99)) == [.vector])
        #expect(judge([page], before: vector(100), after: vector(100, "*")).isEmpty)
    }

    @Test func aRowOfAnOwnerThatIsNotGrantedIsFound() throws {
        #expect(judge([try Sample.page([("clara", "r0", 1)])]) == [.vector])
    }

    @Test func aResyncIsFound() throws {
        let page = try Sample.page([], more: #","resync":[{"syncId":"anna","reason":"history_changed"}]"#)
        #expect(judge([page]) == [.vector])
    }
}
