import Gateway
import HTTP
import RestFace
import ScriptedFaces
import SyncModel
import Synchronization
import Testing

/// What a PUT of an array reads of the rows.
@Suite struct RestArrayTests {
    private static let table = Table(name: "item", columns: [Column(name: "title", type: .text)])

    private func put(
        _ ids: [String], _ members: String, _ session: ScriptedSession
    ) async throws -> ScriptedSession.Answer {
        let records = ids.map { #"{"id":"\#($0)","Ts":9,\#(members)}"# }.joined(separator: ",")
        return try await session.respond(of: RestFace(), .put, "/rest/item", body: "[\(records)]")
    }

    private static let delete = #""title":"A","Deleted":true"#

    private func session(_ limits: SyncLimits = SyncLimits()) -> ScriptedSession {
        let session = ScriptedSession([Self.table], limits: limits)
        session.state.withLock { state in
            state.rows = (1...6).map { ScriptedSession.Row("i\($0)", at: 9, ["\"A\($0)\""]) }
            state.maximumRows = 1
        }
        return session
    }

    /// Whether they exist is all that is needed, so an owner's largest rows are in memory one page at a time.
    @Test func theRowsThatAreDeletedAreNotKeptInMemory() async throws {
        let session = session()
        #expect(try await put((1...6).map { "i\($0)" }, Self.delete, session).status == 200)
        let (reads, held) = session.state.withLock { ($0.leastHeads.count, $0.mostPagesHeld) }
        #expect(reads == 6 && held == 0)
    }

    @Test func oneOfAnUnknownRowStoresNothing() async throws {
        let session = session()
        #expect(try await put(["i1", "i7", "i3"], Self.delete, session).status == 422)
        #expect(session.state.withLock(\.batches) == [])
    }

    /// Ordering would refuse them, so that to read them all would be work for nothing.
    @Test func deletesOfMoreThanABatchMayTouchAreRefusedOnceThatIsKnown() async throws {
        var limits = SyncLimits()
        // Values of four bytes each.
        limits.outcome.maxBatchRowBytes = 8
        let session = session(limits)
        let answer = try await put((1...6).map { "i\($0)" }, Self.delete, session)
        #expect(answer.code == .changeRefused)
        #expect(session.state.withLock { ($0.leastHeads.count, $0.batches.count) } == (2, 0))
        #expect(try await put(["i1", "i2"], Self.delete, session).status == 200)
    }

    /// What the server adds to what was asked for makes no array too large.
    @Test func asManyRecordsAsABatchMayHaveAreMadeAndDeletedAtOnce() async throws {
        var limits = SyncLimits()
        limits.outcome.maxChanges = 2
        let session = session(limits)
        func post(_ count: Int) async throws -> Int {
            let records = (0..<count).map { #"{"id":"n\#($0)","title":"A","Deleted":true}"# }.joined(separator: ",")
            return try await session.respond(of: RestFace(), .post, "/rest/item", body: "[\(records)]").status
        }
        #expect(try await post(2) == 201)
        #expect(session.state.withLock(\.batches) == [.init(isAtomic: true, count: 4)])
        #expect(try await post(3) == 413)
    }

    /// The answer has them, so that its records are whole.
    @Test func theColumnsThatWereNotSentAreReadPageByPage() async throws {
        let session = session()
        let answer = try await put((1...6).map { "i\($0)" }, #""Deleted":false"#, session)
        let records = (1...6).map { #"{"id":"i\#($0)","title":"A\#($0)","Ts":1,"Deleted":false}"# }
        #expect(answer.status == 200 && answer.text == "[\(records.joined(separator: ","))]")
        let (reads, held) = session.state.withLock { ($0.leastHeads.count, $0.mostPagesHeld) }
        #expect(reads == 6 && held == 0)
    }

    /// Together they may be as large as all rows that a batch may change.
    @Test func aLongAnswerIsMadeInPiecesWhileItsRowsAreRead() async throws {
        let session = session()
        let title = String(repeating: "A", count: 300_000)
        session.state.withLock { state in
            for index in state.rows.indices { state.rows[index].values = ["\"\(title)\""] }
        }
        let answer = try await put((1...6).map { "i\($0)" }, #""Deleted":false"#, session)
        let records = (1...6).map { #"{"id":"i\#($0)","title":"\#(title)","Ts":1,"Deleted":false}"# }
        let isWhole = answer.text == "[\(records.joined(separator: ","))]"
        #expect(answer.status == 200 && isWhole)
        let (pieces, held) = session.state.withLock { ($0.pieces, $0.mostPagesHeld) }
        #expect(pieces > 2 && held == 0)
    }

    // MARK: Rates

    /// As many as an array may have, of which the server reads each.
    @Test func recordsThatAreRefusedTakeTheRatesOfUploads() async throws {
        for method in [HTTPMethod.post, .put] {
            let session = session()
            let body = #"[{"id":"i8","title":7},{"id":"i9","title":8}]"#
            session.state.withLock { $0.allowedChanges = 3 }
            let refused = try await session.respond(of: RestFace(), method, "/rest/item", body: body)
            #expect(refused.status == 422 && refused.code == .changeRefused)
            #expect(session.state.withLock(\.refused) == (2, body.utf8.count))
            let second = try await session.respond(of: RestFace(), method, "/rest/item", body: body)
            #expect(second.code == .rateLimited)
            #expect(session.state.withLock(\.batches) == [])
        }
    }

    @Test func deletesOfUnknownRowsTakeTheRatesOfUploads() async throws {
        let session = session()
        #expect(try await put(["i1", "i7"], Self.delete, session).code == .changeRefused)
        #expect(session.state.withLock(\.refused.count) == 2)
    }
}
