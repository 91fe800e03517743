import Gateway
import HTTP
import SQLiteNowFace
import ScriptedFaces
import SyncModel
import Synchronization
import Testing

/// What the device is told of rows that change while it is answered.
@Suite struct SQLiteNowAnswerTests {
    private typealias Row = ScriptedSession.Row

    private let session = ScriptedSession([Table(name: "users", columns: [Column(name: "name", type: .text)])])

    /// A client would make the row again, or keep its edit at the tombstone's version, which revives it.
    @Test(arguments: [#""UPDATE","payload":{"name":"A"}"#, #""DELETE""#])
    func aConflictWithARowThatIsDeletedByThenIsNone(change: String) async throws {
        session.state.withLock { state in
            state.status = .conflict
            state.shown = Row("u1", at: 120, isDeleted: true, ["\"B\""])
        }
        let answer = try await session.respond(
            of: SQLiteNowFace(), .post, "/sync/upload",
            body: #"{"changes":[{"sourceChangeId":1,"table":"users","pk":"u1","serverVersion":100,"op":\#(change)}]}"#)
        #expect(answer.text == #"{"statuses":[{"sourceChangeId":1,"status":"applied","newServerVersion":100}]}"#)
    }

    private func download() async throws -> ScriptedSession.Answer {
        try await session.respond(
            of: SQLiteNowFace(), .get, "/sync/download", query: [("after", "0"), ("limit", "10")])
    }

    /// In one that is behind the position would fall back, and rows that the page has would come again, over what the user does.
    @Test func aPageIsContinuedInAStreamThatIsNotBehind() async throws {
        session.state.withLock { state in
            state.rows = [Row("u1", at: 101, by: "phone", ["\"A\""]), Row("u2", at: 102, ["\"B\""])]
            state.maximumRows = 1
        }
        let answer = try await download()
        #expect(answer.text.contains(#""nextAfter":102,"hasMore":false,"windowUntil":102"#))
        #expect(session.state.withLock(\.leastHeads) == [.zero, TimeStamp(102)])
    }

    @Test func aPageIsNotContinuedInAnotherHistory() async throws {
        session.state.withLock { state in
            state.rows = [Row("u1", at: 101, ["\"A\""]), Row("u2", at: 102, ["\"B\""])]
            state.maximumRows = 1
            state.afterRead = { $0.end = TimeStamp(100) }
        }
        let answer = try await download()
        // The device's own position is none that this server lacks.
        #expect(answer.status == 503 && answer.code == .notReady)
    }
}
