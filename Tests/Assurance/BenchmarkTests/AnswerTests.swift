import LoadTools
import Testing

@testable import Benchmark

/// Pull answers are read without decoding their rows.
@Suite struct AnswerTests {
    @Test func theVectorIsReadUnchanged() throws {
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

    @Test func thePullAfterACutPageSendsItsHeads() throws {
        let entry = #"{"syncId":"a","knowledgeId":"k1","lastTimeStamp":103}"#
        let heads = #""cutFrom":[{"syncId":"a","head":200}]"#
        let cut = try PullAnswer(
            bytes(#"{"changes":[],"knowledge":[\#(entry)],"hasMore":true,"revoked":[],"resync":[],\#(heads)}"#))
        let requests = Requests(owner: "a", device: "k1")
        let next = String(decoding: requests.pull(after: cut, limit: 7), as: UTF8.self)
        #expect(next.hasSuffix(#""limit":7,"knowledge":[\#(entry)],\#(heads)}"#), "\(next)")
        let whole = try PullAnswer(bytes(#"{"changes":[],"knowledge":[\#(entry)],"hasMore":true,"revoked":[]}"#))
        #expect(whole.cutFrom == nil)
        #expect(String(decoding: requests.pull(after: whole, limit: 7), as: UTF8.self).hasSuffix("\(entry)]}"))
    }

    @Test func anEmptyVectorHasNoHead() throws {
        let answer = try PullAnswer(bytes(#"{"changes":[],"knowledge":[],"hasMore":false,"revoked":[]}"#))
        #expect(String(decoding: answer.knowledge, as: UTF8.self) == "[]")
        #expect(!answer.hasMore)
        #expect(answer.head == 0)
    }

    @Test func anAnswerWithoutVectorIsRejected() {
        #expect(throws: LoadFailure.self) { try PullAnswer(bytes(#"{"status":504}"#)) }
    }

    @Test func rowsAreCountedByTheirTimeStamps() {
        let page = bytes(
            #"{"changes":[{"timeStamp":1},{"timeStamp":2}],"knowledge":[{"lastTimeStamp":2}],"hasMore":false}"#)
        #expect(PullAnswer.rows(in: page) == 2)
        #expect(PullAnswer.rows(in: bytes("")) == 0)
    }

    /// A slice that does not start at 0, like that of a connection's buffer.
    private func bytes(_ text: String) -> ArraySlice<UInt8> { Array(("head" + text).utf8)[4...] }
}
