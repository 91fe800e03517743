import Gateway
import HTTP
import ScriptedFaces
import SyncModel
import Synchronization
import Testing
import TrackerFace

/// A time that a device names shows that it has the rows below only where it can have that time from a download alone.
@Suite struct ProofTests {
    private typealias Row = ScriptedSession.Row

    /// A gateway that knows what others have stored of the device.
    private func session(_ rows: [Row], after earlier: ScriptedSession? = nil) -> ScriptedSession {
        let column = Column(name: "title", type: .text)
        let session = ScriptedSession([Table(name: "note", policy: .lastWriteWins, columns: [column])])
        let known = earlier?.state.withLock(\.durablePositions) ?? [:]
        session.state.withLock { state in
            state.rows = rows
            state.positions = known
        }
        return session
    }

    /// The titles of a download.
    private func titles(after time: Int64, _ session: ScriptedSession) async throws -> [String] {
        let after = "1970-01-01T00:00:00.000\(time)Z"
        let answer = try await session.respond(of: TrackerFace(), .get, "/tracker/note", query: [("after", after)])
        #expect(answer.status == 200)
        return answer.text.matches(of: /"title":"(\w)"/).map { String($0.1) }
    }

    private static let document =
        #"{"title":"A","createdOn":"2026-05-01T08:00:00Z","updatedOn":"2026-05-01T08:00:00Z"}"#

    /// A device under lastWriteWins takes over the record of a conflict, and so its time, up to which it has downloaded nothing.
    @Test(arguments: [(HTTPMethod.put, "/tracker/note/d", 409), (.post, "/tracker/note", 200)])
    func everyGatewayKnowsWhatAnUploadShowedOfAnotherDevice(method: HTTPMethod, path: String, status: Int) async throws
    {
        let first = session([])
        first.state.withLock {
            $0.status = .conflict
            $0.shown = Row("d", at: 120, ["\"D\""])
        }
        #expect(try await first.respond(of: TrackerFace(), method, path, body: Self.document).status == status)
        // A stream that is behind could not say which rows are missing below.
        let second = session([], after: first)
        #expect(try await second.respond(of: TrackerFace(), .get, "/tracker/devices").status == 200)
        #expect(second.state.withLock(\.leastHeads) == [TimeStamp(120)])
    }

    /// A stream that is behind has rows as they were before the device edited them, and the device has its own versions.
    @Test(arguments: ["/tracker/devices", "/tracker/note"])
    func everyGatewayKnowsWhatTheDeviceWrote(path: String) async throws {
        let first = session([])
        #expect(try await first.respond(of: TrackerFace(), .post, "/tracker/note", body: Self.document).status == 201)
        let second = session([], after: first)
        #expect(try await second.respond(of: TrackerFace(), .get, path).status == 200)
        let leastHeads = second.state.withLock(\.leastHeads)
        #expect(!leastHeads.isEmpty && leastHeads.allSatisfy { $0 == TimeStamp(7) })
    }

    /// A row that the device did not send whole comes to it, too, and it knows that row's time from its upload.
    @Test func theTimeOfAnOwnRowInAnAnswerIsNone() async throws {
        let session = session([
            Row("s", at: 110, ["\"S\""]), Row("r", at: 130, by: "phone", isExact: false, ["\"R\""]),
        ])
        #expect(try await session.respond(of: TrackerFace(), .get, "/tracker/devices").status == 200)
        // The first answer is lost.
        for _ in 0..<2 { #expect(try await titles(after: 130, session) == ["S", "R"]) }
        // A time that only the answer had.
        #expect(try await titles(after: 110, session) == ["R"])
    }

    /// HEAD sends no rows, and so changes nothing that is known of the device.
    @Test(arguments: ["/tracker/devices", "/tracker/note"])
    func aRequestForHeadersAloneShowsNothing(path: String) async throws {
        let session = session([Row("s", at: 110, ["\"S\""])])
        let head = try await session.respond(
            of: TrackerFace(), .head, path, query: [("after", "1970-01-01T00:00:00.000090Z")])
        #expect(head.status == 200 && head.text.isEmpty)
        #expect(session.state.withLock(\.positions).isEmpty)
        let wrong = try await session.respond(of: TrackerFace(), .head, path, query: [("after", "x")])
        #expect(wrong.status == 422)
        #expect(try await session.respond(of: TrackerFace(), .head, "/tracker/other").status == 404)
        // The first request for rows freezes the head, and has the row.
        session.state.withLock { $0.rows.append(Row("t", at: 120, ["\"T\""])) }
        #expect(try await titles(after: 100, session) == ["S", "T"])
    }
}
