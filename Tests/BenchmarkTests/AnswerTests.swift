import Testing

@testable import Benchmark

/// What the load reads of answers without decoding them.
@Suite struct AnswerTests {
    @Test func aPullsVectorIsTakenAsItStands() throws {
        let answer = try PullAnswer(
            bytes(
                #"{"changes":[{"timeStamp":9,"values":{"title":"\"knowledge\":[1]"}}],"knowledge":[{"syncId":"a","#
                    + #""knowledgeId":"k1","lastTimeStamp":103}],"hasMore":true,"revoked":[]}"#))
        #expect(
            String(decoding: answer.knowledge, as: UTF8.self)
                == #"[{"syncId":"a","knowledgeId":"k1","lastTimeStamp":103}]"#)
        #expect(answer.hasMore)
        #expect(answer.head == 103)
    }

    @Test func anEmptyVectorHasNoHead() throws {
        let answer = try PullAnswer(bytes(#"{"changes":[],"knowledge":[],"hasMore":false,"revoked":[]}"#))
        #expect(String(decoding: answer.knowledge, as: UTF8.self) == "[]")
        #expect(!answer.hasMore)
        #expect(answer.head == 0)
    }

    @Test func anAnswerWithoutVectorIsRefused() {
        #expect(throws: BenchmarkFailure.self) { try PullAnswer(bytes(#"{"status":504}"#)) }
    }

    @Test func rowsAreCountedByTheirTimeStamps() {
        let page = bytes(
            #"{"changes":[{"timeStamp":1},{"timeStamp":2}],"knowledge":[{"lastTimeStamp":2}],"hasMore":false}"#)
        #expect(PullAnswer.rows(in: page) == 2)
        #expect(PullAnswer.rows(in: bytes("")) == 0)
    }

    /// A slice that does not begin at 0, as a connection's buffer lends it.
    private func bytes(_ text: String) -> ArraySlice<UInt8> { Array(("head" + text).utf8)[4...] }
}
