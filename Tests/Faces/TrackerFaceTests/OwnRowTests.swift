import Gateway
import HTTP
import ScriptedFaces
import SyncModel
import Synchronization
import Testing
import TrackerFace

/// Rows that are as the device sent them are looked at once, and not with each of its requests for devices.
@Suite struct OwnRowTests {
    private typealias Row = ScriptedSession.Row

    private let column = Column(name: "title", type: .text)

    private func session(_ rows: [Row]) -> ScriptedSession {
        let session = ScriptedSession([Table(name: "note", policy: .lastWriteWins, columns: [column])])
        session.state.withLock { state in
            state.rows = rows
            state.maximumRows = 100
        }
        return session
    }

    private func own(_ times: ClosedRange<Int64>) -> [Row] {
        times.map { Row("r\($0)", at: $0, by: "phone", ["\"N\""]) }
    }

    /// The devices that are listed, and how often rows were read for it.
    private struct Listed: Equatable {
        var ids: [String] = []
        var reads: Int
    }

    private func devices(after time: Int64?, _ session: ScriptedSession) async throws -> Listed {
        session.state.withLock { $0.leastHeads = [] }
        let query = time.map { [("after", "1970-01-01T00:00:00.000\($0)Z")] } ?? []
        let answer = try await session.respond(of: TrackerFace(), .get, "/tracker/devices", query: query)
        #expect(answer.status == 200)
        let ids = answer.text.matches(of: /"installationId":"(\w+)"/).map { String($0.1) }
        return Listed(ids: ids, reads: session.state.withLock(\.leastHeads.count))
    }

    @Test func aDeviceThatIsAloneReadsItsRowsOnce() async throws {
        let session = session(own(100...599))
        #expect(try await devices(after: nil, session) == Listed(reads: 5))
        for _ in 0..<2 { #expect(try await devices(after: nil, session) == Listed(reads: 1)) }
        session.state.withLock { $0.rows += own(600...999) }
        #expect(try await devices(after: nil, session) == Listed(reads: 4))
        #expect(try await devices(after: nil, session) == Listed(reads: 1))
        // Another device writes one of them, which is now the newest.
        session.state.withLock { state in
            state.rows.removeFirst()
            state.rows.append(Row("r100", at: 1000, ["\"M\""]))
        }
        #expect(try await devices(after: nil, session) == Listed(ids: ["laptop"], reads: 1))
    }

    /// Where the device is asked for from below another device's row, as after its file was restored, the row is news again.
    @Test func rowsOfOthersBelowAreNotLeftOut() async throws {
        let session = session([Row("d", at: 100, ["\"D\""])] + own(101...500))
        #expect(try await devices(after: nil, session).ids == ["laptop"])
        let note = [("after", "1970-01-01T00:00:00.000100Z")]
        for query in [[], note] {
            let answer = try await session.respond(of: TrackerFace(), .get, "/tracker/note", query: query)
            #expect(answer.status == 200)
        }
        #expect(try await devices(after: 100, session) == Listed(reads: 4))
        #expect(try await devices(after: 100, session) == Listed(reads: 1))
        #expect(try await devices(after: 300, session) == Listed(reads: 1))
        #expect(try await devices(after: nil, session).ids == ["laptop"])
        // A gateway that knows what is stored alone.
        let positions = session.state.withLock(\.durablePositions)
        session.state.withLock { $0.positions = positions }
        #expect(try await devices(after: nil, session).ids == ["laptop"])
    }

    /// What was read is noted at once: a client that gives up sooner would never get an answer.
    @Test func aRequestThatFailsIsContinuedByTheNext() async throws {
        let session = session(own(100...599))
        session.state.withLock { state in
            state.afterRead = { if $0.leastHeads.count == 3 { $0.end = .zero } }
        }
        let failed = try await session.respond(of: TrackerFace(), .get, "/tracker/devices")
        #expect(failed.status == 503 && failed.code == .notReady)
        session.state.withLock { state in
            state.afterRead = { _ in }
            state.end = .maximum
        }
        #expect(try await devices(after: nil, session) == Listed(reads: 2))
    }

    /// In one that is behind, rows of others up to the first one's head would be missing, and the device counts as having them.
    @Test func aSearchIsContinuedInAStreamThatIsNotBehind() async throws {
        let session = session(own(100...599))
        #expect(try await devices(after: nil, session).reads == 5)
        let heads = session.state.withLock(\.leastHeads)
        #expect(heads == [.zero] + Array(repeating: TimeStamp(599), count: 4))
    }
}
