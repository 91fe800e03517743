import FanOutLink
import Gateway
import HTTP
import SyncModel
import Synchronization
import Testing

/// What a client does not get, it removes: no answer is older than what its device wrote.
@Suite struct PositionTests {
    @Test func noAnswerIsOlderThanWhatTheDeviceWrote() async throws {
        let session = ScriptedSession()
        #expect(try await session.respond(.get) == 200)
        #expect(try await session.respond(.delete, id: "c1") == 204)
        session.state.withLock { $0.leastHeads = [] }
        #expect(try await session.respond(.get) == 200)
        #expect(try await session.respond(.get, id: "c1") == 404)
        #expect(session.state.withLock(\.leastHeads) == [TimeStamp(7), TimeStamp(7)])
    }

    @Test func aPositionOfAnotherHistoryIsNone() async throws {
        let (old, restored) = (ScriptedSession(), ScriptedSession(epoch: "e2"))
        #expect(try await old.respond(.delete, id: "c1") == 204)
        let positions = old.state.withLock(\.positions)
        restored.state.withLock { $0.positions = positions }
        #expect(try await restored.respond(.get) == 200)
        #expect(restored.state.withLock(\.leastHeads) == [.zero])
    }

    /// A log that was restored may have less than the device wrote, in the same history.
    @Test func aPositionThatNoStreamReachesBeginsAtZero() async throws {
        let session = ScriptedSession()
        #expect(try await session.respond(.delete, id: "c1") == 204)
        session.state.withLock {
            $0.leastHeads = []
            $0.end = TimeStamp(7)
        }
        #expect(try await session.respond(.get) == 200)
        #expect(session.state.withLock(\.leastHeads) == [TimeStamp(7), .zero])
    }

    /// Where others write the same rows all the time, a delete is tried some times, each after what it was shown.
    @Test func aDeleteIsTriedABoundedNumberOfTimes() async throws {
        let session = ScriptedSession()
        session.state.withLock { $0.status = .conflict }
        #expect(try await session.respond(.delete, id: "c1") == 503)
        let (batches, leastHeads) = session.state.withLock { ($0.batches, $0.leastHeads) }
        #expect(batches == Array(repeating: true, count: 8))
        #expect(leastHeads == [TimeStamp.zero] + (7..<14).map { TimeStamp($0) })
    }
}
