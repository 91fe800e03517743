import Gateway
import HTTP
import RestFace
import ScriptedFaces
import SyncModel
import Synchronization
import Testing

/// Two downloads of one device and table at the same time, as of a client that gave up the first.
@Suite struct RestOverlapTests {
    private typealias Row = ScriptedSession.Row

    private let face = RestFace()

    private func session(_ rows: [Row]) -> ScriptedSession {
        let session = ScriptedSession([Table(name: "item", columns: [Column(name: "title", type: .text)])])
        session.state.withLock { $0.rows = rows }
        return session
    }

    private func get(_ ts: Int, _ session: ScriptedSession) async throws -> String {
        try await session.respond(of: face, .get, "/rest/item", query: [("ts", "\(ts)")]).text
    }

    /// The first has a row more, since it is read later, which a device that has the answer of the second lacks.
    @Test func theAnswerOfADownloadThatBeganEarlierDoesNotCount() async throws {
        let others = [Row("i1", at: 10, ["\"A\""]), Row("i2", at: 20, ["\"B\""])]
        let (first, second) = (session(others), session(Array(others.prefix(1))))
        let texts = Mutex<[String]>([])
        first.state.withLock {
            $0.beforeNextRead = {
                let text = try await get(0, second)
                texts.withLock { $0.append(text) }
            }
        }
        _ = try await get(0, first)
        #expect(texts.withLock(\.self) == [#"[{"id":"i1","title":"A","Ts":10,"Deleted":false}]"#])
        #expect(
            try await second.respond(of: face, .post, "/rest/item", body: #"{"id":"i3","title":"C"}"#).status == 201)
        second.state.withLock { $0.rows = others + [Row("i3", at: 30, by: "phone", ["\"C\""])] }
        #expect(try await get(30, second) == #"[{"id":"i2","title":"B","Ts":20,"Deleted":false}]"#)
    }

    @Test func theAnswerOfALaterDownloadCounts() async throws {
        let session = session([Row("i1", at: 10, ["\"A\""])])
        for rows in [1, 2] {
            session.state.withLock { $0.rows = (1...rows).map { Row("i\($0)", at: Int64($0) * 10, ["\"A\""]) } }
            _ = try await get(0, session)
        }
        #expect(
            try await session.respond(of: face, .post, "/rest/item", body: #"{"id":"i3","title":"C"}"#).status == 201)
        session.state.withLock { $0.rows.append(Row("i3", at: 30, by: "phone", ["\"C\""])) }
        #expect(try await get(30, session) == "[]")
    }
}
