import CrudFace
import Gateway
import HTTP
import ScriptedFaces
import SyncModel
import Synchronization
import Testing

/// What a client does not get, it removes: no answer is older than what its device wrote.
@Suite struct PositionTests {
    @Test func noAnswerIsOlderThanWhatTheDeviceWrote() async throws {
        let session = ScriptedSession.ofCategories()
        #expect(try await session.respond(.get).status == 200)
        #expect(try await session.respond(.delete, "/c1").status == 204)
        session.state.withLock { $0.leastHeads = [] }
        #expect(try await session.respond(.get).status == 200)
        #expect(try await session.respond(.get, "/c1").status == 404)
        #expect(session.state.withLock(\.leastHeads) == [TimeStamp(7), TimeStamp(7)])
    }

    @Test func aPositionOfAnotherHistoryIsNone() async throws {
        let (old, restored) = (ScriptedSession.ofCategories(), ScriptedSession.ofCategories(epoch: "e2"))
        #expect(try await old.respond(.delete, "/c1").status == 204)
        let positions = old.state.withLock(\.positions)
        restored.state.withLock { $0.positions = positions }
        #expect(try await restored.respond(.get).status == 200)
        #expect(restored.state.withLock(\.leastHeads) == [.zero])
    }

    /// A log that was restored may have less than the device wrote, in the same history.
    @Test func aPositionThatNoStreamReachesBeginsAtZero() async throws {
        let session = ScriptedSession.ofCategories()
        #expect(try await session.respond(.delete, "/c1").status == 204)
        session.state.withLock {
            $0.leastHeads = []
            $0.end = TimeStamp(7)
        }
        #expect(try await session.respond(.get).status == 200)
        #expect(session.state.withLock(\.leastHeads) == [TimeStamp(7), .zero])
    }

    /// Where others write the same rows all the time, a delete is tried some times, each after what it was shown.
    @Test func aDeleteIsTriedABoundedNumberOfTimes() async throws {
        let session = ScriptedSession.ofCategories()
        session.state.withLock { $0.status = .conflict }
        #expect(try await session.respond(.delete, "/c1").status == 503)
        let (batches, leastHeads) = session.state.withLock { ($0.batches, $0.leastHeads) }
        #expect(batches == Array(repeating: ScriptedSession.Batch(isAtomic: true, count: 1), count: 8))
        #expect(leastHeads == [TimeStamp.zero] + (7..<14).map { TimeStamp($0) })
    }
}

extension ScriptedSession {
    /// Categories, each with a parent and with one that it was copied from.
    static func ofCategories(
        epoch: String = "e1", limits: SyncLimits = SyncLimits(),
        apply: @escaping @Sendable (Batch, inout State) -> Void = { _, _ in }
    ) -> ScriptedSession {
        let columns =
            [Column(name: "name", type: .text)]
            + ["parent_id", "copy_id"].map {
                Column(name: $0, type: .text, references: "category", onDelete: .reassign)
            }
        let table = Table(name: "category", policy: .lastWriteWins, columns: columns)
        return ScriptedSession([table], epoch: epoch, limits: limits, apply: apply)
    }

    func respond(
        _ method: HTTPMethod, _ id: String = "", body: String = ""
    ) async throws -> Answer {
        try await respond(of: CrudFace(), method, "/api/category" + id, body: body)
    }
}
