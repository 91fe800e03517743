import Gateway
import HTTP
import RestFace
import ScriptedFaces
import SyncModel
import Synchronization
import Testing

/// What the server has noted of a device in one history means nothing in another one, whose timeStamps may be lower.
@Suite struct RestHistoryTests {
    private typealias Row = ScriptedSession.Row

    private func session(_ epoch: String, _ rows: [Row]) -> ScriptedSession {
        let session = ScriptedSession(
            [Table(name: "item", columns: [Column(name: "title", type: .text)])], epoch: epoch)
        session.state.withLock { $0.rows = rows }
        return session
    }

    private func get(_ ts: Int, _ session: ScriptedSession) async throws -> String {
        try await session.respond(of: RestFace(), .get, "/rest/item", query: [("ts", "\(ts)")]).text
    }

    @Test func aWatermarkOfAnotherHistoryIsNone() async throws {
        let old = session("e1", [Row("i1", at: 5000, ["\"A\""])])
        #expect(try await get(5000, old) == "[]")
        let noted = old.state.withLock(\.positions)
        #expect(noted.values.contains(5000))
        // The device has begun again, and uploaded a row after the laptop did.
        let new = session("e2", [Row("i2", at: 39, ["\"B\""]), Row("i3", at: 40, by: "phone", ["\"C\""])])
        new.state.withLock { $0.positions = noted }
        #expect(try await get(40, new) == #"[{"id":"i2","title":"B","Ts":39,"Deleted":false}]"#)
    }

    @Test func whatAConflictShowedInAnotherHistoryIsNoReasonToSendRowsAgain() async throws {
        let old = session("e1", [])
        old.state.withLock {
            $0.status = .conflict
            $0.shown = Row("i1", at: 5000, ["\"A\""])
        }
        let edit = #"{"id":"i1","title":"B","Ts":4000}"#
        #expect(try await old.respond(of: RestFace(), .put, "/rest/item", body: edit).status == 409)
        let noted = old.state.withLock(\.positions)
        #expect(noted.values.contains(5000))
        // The device asks with the laptop's row, which it has from a download alone, so that it has what is below, too.
        let new = session("e2", [Row("i2", at: 39, ["\"B\""]), Row("i3", at: 40, ["\"C\""])])
        new.state.withLock { $0.positions = noted }
        #expect(try await get(40, new) == "[]")
    }
}
