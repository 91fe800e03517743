import Gateway
import HTTP
import SQLiteNowFace
import ScriptedFaces
import SyncModel
import Synchronization
import Testing

/// Changes that cannot be read get statuses, and count as all others.
@Suite struct SQLiteNowLimitTests {
    private let session = ScriptedSession(
        [Table(name: "users", columns: [Column(name: "name", type: .text)])],
        limits: SyncLimits(outcome: OutcomeLimits(maxChanges: 3)))

    private func upload(_ changes: [String]) async throws -> ScriptedSession.Answer {
        try await session.respond(
            of: SQLiteNowFace(), .post, "/sync/upload", body: #"{"changes":[\#(changes.joined(separator: ","))]}"#)
    }

    private static func invalid(_ number: Int) -> String { #"{"sourceChangeId":\#(number)}"# }

    @Test func thereMayBeNoMoreThanABatchHas() async throws {
        let allowed = try await upload((1...3).map(Self.invalid))
        #expect(allowed.status == 200 && allowed.text.matches(of: /"invalid"/).count == 3)
        let refused = try await upload((1...4).map(Self.invalid))
        #expect(refused.status == 413 && refused.code == .batchTooLarge)
    }

    @Test func theyCountForTheRates() async throws {
        let valid = #"{"sourceChangeId":1,"table":"users","op":"INSERT","pk":"u1","payload":{"name":"A"}}"#
        let answer = try await upload([valid, Self.invalid(2), Self.invalid(30)])
        #expect(answer.status == 200)
        let (count, bytes) = session.state.withLock(\.refused)
        #expect(count == 2 && bytes == Self.invalid(2).utf8.count + Self.invalid(30).utf8.count)
    }
}
