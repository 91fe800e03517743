import Gateway
import HTTP
import SQLiteNowFace
import ScriptedFaces
import SyncModel
import Synchronization
import Testing

/// In a stream that is behind, a row may be as it was before the device edited it: the device would lose its edit, and never get it
/// back, since it has that version.
@Suite struct SQLiteNowWrittenTests {
    private func session(epoch: String = "e1") -> ScriptedSession {
        ScriptedSession([Table(name: "users", columns: [Column(name: "name", type: .text)])], epoch: epoch)
    }

    private func upload(base: Int, _ session: ScriptedSession) async throws {
        let change =
            #"{"sourceChangeId":1,"table":"users","op":"UPDATE","pk":"u1","serverVersion":\#(base),"payload":{"name":"A"}}"#
        let answer = try await session.respond(
            of: SQLiteNowFace(), .post, "/sync/upload", body: #"{"changes":[\#(change)]}"#)
        #expect(answer.status == 200)
    }

    /// - Returns: what the reads had to have reached.
    private func download(after: Int, _ session: ScriptedSession) async throws -> [TimeStamp] {
        session.state.withLock { $0.leastHeads = [] }
        let answer = try await session.respond(
            of: SQLiteNowFace(), .get, "/sync/download", query: [("after", "\(after)"), ("limit", "10")])
        #expect(answer.status == 200)
        return session.state.withLock(\.leastHeads)
    }

    @Test(arguments: [0, 5]) func aDownloadIsNotOlderThanWhatTheDeviceUploaded(base: Int) async throws {
        let session = session()
        try await upload(base: base, session)
        #expect(try await download(after: 3, session) == [TimeStamp(7)])
        #expect(try await download(after: 9, session) == [TimeStamp(9)])
    }

    /// As after a process was killed; a row that is new has no earlier version.
    @Test(arguments: [(1, 3), (2, 7)]) func everyGatewayKnowsOfAnEdit(version: Int64, leastHead: Int64) async throws {
        let (first, second) = (session(), session())
        // The second one has read the device's positions before.
        #expect(try await download(after: 3, second) == [TimeStamp(3)])
        first.state.withLock { $0.status = .applied(TimeStamp(7), version: version) }
        // Also of one with base 0, which was made before the answer to its creation came.
        try await upload(base: 0, first)
        let stored = first.state.withLock(\.durablePositions)
        second.state.withLock { $0.durablePositions = stored }
        #expect(try await download(after: 3, second) == [TimeStamp(leastHead)])
    }

    @Test func aConflictIsNoEdit() async throws {
        let session = session()
        session.state.withLock { $0.status = .conflict }
        try await upload(base: 5, session)
        #expect(session.state.withLock(\.durablePositions).isEmpty)
    }

    /// A log that was restored may have less than the device wrote, in the same history.
    @Test func whereNoStreamHasWhatTheDeviceUploadedItsPositionCounts() async throws {
        let session = session()
        try await upload(base: 5, session)
        session.state.withLock { $0.end = TimeStamp(7) }
        #expect(try await download(after: 3, session) == [TimeStamp(7), TimeStamp(3)])
    }

    @Test func whatTheDeviceUploadedInAnotherHistoryIsNone() async throws {
        let (old, new) = (session(), session(epoch: "e2"))
        try await upload(base: 5, old)
        let stored = old.state.withLock(\.durablePositions)
        new.state.withLock { $0.durablePositions = stored }
        #expect(try await download(after: 3, new) == [TimeStamp(3)])
    }
}
