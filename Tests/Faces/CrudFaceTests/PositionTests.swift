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

    /// It moves to the end of the stream, behind what was read, or behind what is left.
    @Test func aRowThatIsWrittenWhileAListIsReadIsNotLeftOut() async throws {
        let session = ScriptedSession.ofCategories()
        session.state.withLock { state in
            state.rows = ["c1", "c2", "c3"].enumerated().map { .category($1, at: Int64($0 + 1)) }
            state.maximumRows = 1
            state.afterRead = { state in
                guard state.leastHeads.count == 1 else { return }
                state.rows = [.category("c2", at: 2), .category("c3", at: 4), .category("c1", at: 5)]
            }
        }
        let answer = try await session.respond(.get)
        #expect(answer.text.matches(of: /"id":"(c\d)"/).map { String($0.1) } == ["c1", "c2", "c3", "c1"])
        // Each read is of a stream that has reached what the one before had.
        #expect(session.state.withLock(\.leastHeads).map(\.rawValue) == [0, 3, 5, 5])
    }

    @Test func aListIsNotContinuedByAStreamThatIsBehind() async throws {
        let session = ScriptedSession.ofCategories()
        session.state.withLock { state in
            state.rows = ["c1", "c2", "c3"].enumerated().map { .category($1, at: Int64($0 + 1)) }
            state.maximumRows = 1
            state.afterRead = { $0.end = TimeStamp(2) }
        }
        // The client named no position that it could give up.
        let answer = try await session.respond(.get)
        #expect(answer.status == 503 && answer.code == .notReady)
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

extension ScriptedSession.Row {
    fileprivate static func category(_ id: String, at timeStamp: Int64) -> Self {
        Self(id, at: timeStamp, ["\"N\"", "null", "null"])
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
