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

    /// What one gateway has stored, the other reads from the registry of devices.
    private func know(_ source: ScriptedSession, _ target: ScriptedSession) {
        let stored = source.state.withLock(\.durablePositions)
        target.state.withLock { $0.durablePositions = stored }
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

    /// The second gateway's stream is behind, and the answer of the first was lost.
    @Test func anAnswerDoesNotCountAfterADownloadAtAnotherGateway() async throws {
        let others = [Row("i1", at: 10, ["\"A\""]), Row("i2", at: 20, ["\"B\""])]
        let (first, second) = (session(others), session(Array(others.prefix(1))))
        for session in [first, second] { session.state.withLock { $0.sharesPositions = true } }
        _ = try await get(0, first)
        know(first, second)
        second.state.withLock { $0.now = 1 }
        let answer = try await second.respond(of: RestFace(), .get, "/rest/item", query: [("ts", "0")])
        #expect(answer.text == #"[{"id":"i1","title":"A","Ts":10,"Deleted":false}]"#)
        know(second, first)
        #expect(
            try await first.respond(of: face, .post, "/rest/item", body: #"{"id":"i3","title":"C"}"#).status == 201)
        first.state.withLock { $0.rows = others + [Row("i3", at: 30, by: "phone", ["\"C\""])] }
        // This gateway does not know what the device has of the other one.
        #expect(try await get(30, first).contains(#"{"id":"i2","title":"B","Ts":20,"Deleted":false}"#))
    }

    /// The first waits for the registry of devices until the device has got the answer of the second one.
    @Test func aDownloadThatTheDeviceGaveUpForOneAtAnotherGatewayDoesNotCount() async throws {
        let others = [Row("i1", at: 10, ["\"A\""]), Row("i2", at: 20, ["\"B\""])]
        let (first, second) = (session(others), session(Array(others.prefix(1))))
        for (now, session) in [first, second].enumerated() {
            session.state.withLock {
                $0.sharesPositions = true
                $0.now = Int64(now)
            }
        }
        let answer = try await second.respond(of: RestFace(), .get, "/rest/item", query: [("ts", "0")])
        #expect(answer.text == #"[{"id":"i1","title":"A","Ts":10,"Deleted":false}]"#)
        know(second, first)
        _ = try await get(0, first)
        #expect(
            try await first.respond(of: face, .post, "/rest/item", body: #"{"id":"i3","title":"C"}"#).status == 201)
        first.state.withLock { $0.rows = others + [Row("i3", at: 30, by: "phone", ["\"C\""])] }
        #expect(try await get(30, first).contains(#"{"id":"i2","title":"B","Ts":20,"Deleted":false}"#))
    }

    @Test(arguments: [false, true]) func theAnswerOfALaterDownloadCounts(sharesPositions: Bool) async throws {
        let session = session([Row("i1", at: 10, ["\"A\""])])
        session.state.withLock { $0.sharesPositions = sharesPositions }
        for rows in [1, 2] {
            session.state.withLock { $0.rows = (1...rows).map { Row("i\($0)", at: Int64($0) * 10, ["\"A\""]) } }
            let before = session.state.withLock(\.durablePositions)
            _ = try await get(0, session)
            // Others know the gateway in which the device stays.
            if rows > 1 { #expect(session.state.withLock(\.durablePositions) == before) }
        }
        #expect(
            try await session.respond(of: face, .post, "/rest/item", body: #"{"id":"i3","title":"C"}"#).status == 201)
        session.state.withLock { $0.rows.append(Row("i3", at: 30, by: "phone", ["\"C\""])) }
        #expect(try await get(30, session) == "[]")
    }
}
