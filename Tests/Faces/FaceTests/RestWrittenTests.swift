import Gateway
import HTTP
import RestFace
import ScriptedFaces
import SyncModel
import Synchronization
import Testing

/// A device may name a lower `Ts` than it has had, as one that removes rows which it deleted, or begins again.
///
/// A stream that is behind what the server knows of the device would then send rows as they were before, or lack those up to the
/// watermark, which never come.
@Suite struct RestWrittenTests {
    private typealias Row = ScriptedSession.Row

    private func session(_ rows: [Row] = [], epoch: String = "e1") -> ScriptedSession {
        let session = ScriptedSession(
            [Table(name: "item", columns: [Column(name: "title", type: .text)])], epoch: epoch)
        session.state.withLock { $0.rows = rows }
        return session
    }

    /// A gateway that has read the positions of the device before another one stored some.
    private func another(after first: ScriptedSession, _ rows: [Row] = []) -> ScriptedSession {
        let stored = first.state.withLock(\.durablePositions)
        let session = session(rows)
        session.state.withLock { $0.durablePositions = stored }
        return session
    }

    private func put(deleted: Bool, _ session: ScriptedSession) async throws {
        let record = #"{"id":"i1","title":"A","Ts":5,"Deleted":\#(deleted)}"#
        #expect(try await session.respond(of: RestFace(), .put, "/rest/item", body: record).status == 200)
    }

    /// - Returns: what the read of the answer's rows had to have reached.
    private func download(ts: Int, _ session: ScriptedSession) async throws -> [TimeStamp] {
        session.state.withLock { $0.leastHeads = [] }
        let answer = try await session.respond(of: RestFace(), .get, "/rest/item", query: [("ts", "\(ts)")])
        #expect(answer.status == 200)
        return session.state.withLock(\.leastHeads)
    }

    @Test(arguments: [true, false]) func anAnswerIsNotOlderThanWhatTheDeviceUploaded(deleted: Bool) async throws {
        let session = session()
        try await put(deleted: deleted, session)
        #expect(try await download(ts: 0, session) == [TimeStamp(7)])
    }

    /// As after a process was killed; only rows that are deleted are removed from the device.
    @Test(arguments: [true, false]) func everyGatewayKnowsOfADelete(deleted: Bool) async throws {
        let first = session()
        try await put(deleted: deleted, first)
        #expect(try await download(ts: 0, another(after: first)) == [deleted ? TimeStamp(7) : .zero])
    }

    @Test func anAnswerToADeviceThatBeginsAgainIsNotOlderThanItsWatermark() async throws {
        let first = session([Row("i1", at: 50, ["\"A\""])])
        // The device can have this `Ts` from a download alone.
        #expect(try await download(ts: 50, first).last == TimeStamp(50))
        #expect(try await download(ts: 0, first) == [TimeStamp(50)])
        #expect(try await download(ts: 0, another(after: first)) == [TimeStamp(50)])
    }

    /// A log that was restored may have less than the device had, in the same history.
    @Test func whereNoStreamHasWhatTheDeviceUploadedItsTsCounts() async throws {
        let session = session()
        try await put(deleted: true, session)
        session.state.withLock { $0.end = TimeStamp(7) }
        #expect(try await download(ts: 0, session) == [TimeStamp(7), .zero])
        session.state.withLock { $0.end = TimeStamp(5) }
        let answer = try await session.respond(of: RestFace(), .get, "/rest/item", query: [("ts", "6")])
        #expect(answer.code == .positionAhead)
    }

    @Test func whatTheDeviceUploadedInAnotherHistoryIsNone() async throws {
        let (old, new) = (session(), session(epoch: "e2"))
        try await put(deleted: true, old)
        let stored = old.state.withLock(\.durablePositions)
        new.state.withLock { $0.durablePositions = stored }
        #expect(try await download(ts: 0, new) == [.zero])
    }

    /// What a watermark says of a table is not what was written, whatever the table is called.
    @Test func aTableMayBeCalledAsThePosition() async throws {
        let session = ScriptedSession(
            ["item", "written"].map { Table(name: $0, columns: [Column(name: "title", type: .text)]) })
        session.state.withLock { $0.rows = [Row("w1", table: 1, at: 50, ["\"A\""])] }
        let written = try await session.respond(of: RestFace(), .get, "/rest/written", query: [("ts", "50")])
        #expect(written.status == 200)
        #expect(try await download(ts: 0, session) == [.zero])
    }
}
