import HTTP
import RestFace
import ScriptedFaces
import SyncModel
import Synchronization
import Testing

/// Deletes of the REST face in an array.
@Suite struct RestDeleteTests {
    private static let table = Table(name: "item", columns: [Column(name: "title", type: .text)])

    private func put(_ ids: [String], _ session: ScriptedSession) async throws -> Int {
        let records = ids.map { #"{"id":"\#($0)","title":"A","Ts":9,"Deleted":true}"# }
        return try await session.respond(
            of: RestFace(), .put, "/rest/item", body: "[\(records.joined(separator: ","))]"
        ).status
    }

    private func session() -> ScriptedSession {
        let session = ScriptedSession([Self.table])
        session.state.withLock { state in
            state.rows = (1...6).map { ScriptedSession.Row("i\($0)", at: 9, ["\"A\""]) }
            state.maximumRows = 1
        }
        return session
    }

    /// Whether they exist is all that is needed, so an owner's largest rows are in memory one page at a time.
    @Test func theRowsThatAreDeletedAreNotKeptInMemory() async throws {
        let session = session()
        #expect(try await put((1...6).map { "i\($0)" }, session) == 200)
        let (reads, held) = session.state.withLock { ($0.leastHeads.count, $0.mostPagesHeld) }
        #expect(reads == 6 && held == 0)
    }

    @Test func oneOfAnUnknownRowStoresNothing() async throws {
        let session = session()
        #expect(try await put(["i1", "i7", "i3"], session) == 422)
        #expect(session.state.withLock(\.batches) == [])
    }
}
