import Gateway
import HTTP
import ScriptedFaces
import SyncModel
import Synchronization
import Testing

/// A delete is answered as done once no child that the request has a target for names the deleted record.
@Suite struct ReassignTests {
    private typealias Row = ScriptedSession.Row

    private static let deleted = Row("c1", at: 1, isDeleted: true, ["\"A\"", "null", "null"])
    private static let target = Row("c2", at: 2, ["\"B\"", "null", "null"])

    /// A child of c1 by a column.
    private static func child(_ number: Int, by column: Int = 1) -> Row {
        var row = Row("k\(number)", at: Int64(10 + number), ["null", "null", "null"])
        row.values[column] = "\"c1\""
        return row
    }

    /// A session whose batches reassign as many children as they name besides the target.
    private static func session(_ rows: [Row], maxChanges: Int = 10_000) -> ScriptedSession {
        let session = ScriptedSession.ofCategories(
            limits: SyncLimits(outcome: OutcomeLimits(maxChanges: maxChanges))
        ) { batch, state in
            guard case .applied = state.status else { return }
            let children = state.rows.indices.filter { state.rows[$0].values[1] == "\"c1\"" }
            for index in children.prefix(batch.count - 1) { state.rows[index].values[1] = "\"c2\"" }
        }
        session.state.withLock { $0.rows = rows }
        return session
    }

    private static func delete(_ session: ScriptedSession) async throws -> ScriptedSession.Answer {
        try await session.respond(.delete, "/c1", body: #"{"reassign_parent_id":"c2"}"#)
    }

    private static func children(_ session: ScriptedSession) -> Int {
        session.state.withLock { state in state.rows.count { $0.values[1] == "\"c1\"" } }
    }

    /// One that was made and deleted before it was ever sent, and its child was sent.
    @Test func aRecordThatNeverWasHasChildren() async throws {
        let session = Self.session([Self.target, Self.child(1)])
        #expect(try await Self.delete(session).status == 204)
        #expect(Self.children(session) == 0)
    }

    /// The stream that is asked first is behind one that has answered for the child.
    @Test func aChildThatAStreamLacksIsNotLeftWithoutItsParent() async throws {
        let parent = Row("c1", at: 1, ["\"A\"", "null", "null"])
        let session = ScriptedSession.ofCategories { _, state in
            if state.batches.count == 1 { state.rows.append(Self.child(1)) }
        }
        session.state.withLock { $0.rows = [parent] }
        let answer = try await session.respond(.delete, "/c1")
        #expect(answer.status == 409 && answer.code == .hasChildren)
        // The parent was written as it is, and not deleted.
        #expect(session.state.withLock(\.batches.count) == 1)
        let head = session.state.withLock(\.head)
        #expect(session.state.withLock(\.leastHeads).last == TimeStamp(head.rawValue - 1))
        // Without children it is.
        session.state.withLock { _ = $0.rows.removeLast() }
        #expect(try await session.respond(.delete, "/c1").status == 204)
        #expect(session.state.withLock(\.batches.count) == 3)
    }

    @Test func childrenThatOthersKeepWritingAreNoSuccess() async throws {
        let session = Self.session([Self.deleted, Self.target, Self.child(1)])
        session.state.withLock { $0.status = .conflict }
        let answer = try await Self.delete(session)
        #expect(answer.status == 503 && answer.code == .notReady)
        #expect(session.state.withLock(\.batches.count) == 8)
        // Sent again, once they do not.
        session.state.withLock { $0.status = .applied(TimeStamp(1), version: 1) }
        #expect(try await Self.delete(session).status == 204)
        #expect(Self.children(session) == 0)
    }

    @Test func aTargetThatWasDeletedMeanwhileIsNamed() async throws {
        let target = Row("c2", at: 2, isDeleted: true, ["\"B\"", "null", "null"])
        let session = Self.session([Self.deleted, target, Self.child(1)])
        let answer = try await Self.delete(session)
        #expect(answer.status == 422 && answer.code == .changeRefused)
        #expect(session.state.withLock(\.batches) == [])
        // Where no child is left, there is nothing to go there.
        session.state.withLock { _ = $0.rows.removeLast() }
        #expect(try await Self.delete(session).status == 204)
    }

    @Test func aTargetThatIsAChildItselfIsRefused() async throws {
        let target = Row("c2", at: 2, ["\"B\"", "\"c1\"", "null"])
        let session = Self.session([Self.deleted, target])
        let answer = try await Self.delete(session)
        #expect(answer.status == 422 && answer.code == .changeRefused)
    }

    /// A reference has its column's canonical form, in which the letters of a UUID are small.
    @Test(arguments: [[], ["CCCCCCCC-0000-4000-8000-000000000003"]])
    func aTargetBelowARecordWhoseIdHasCapitalsIsRefused(between: [String]) async throws {
        let column = Column(name: "parent_id", type: .uuid, references: "category", onDelete: .reassign)
        let session = ScriptedSession([Table(name: "category", policy: .lastWriteWins, columns: [column])])
        let (id, target) = ("AAAAAAAA-0000-4000-8000-000000000001", "BBBBBBBB-0000-4000-8000-000000000002")
        let line = [id] + between + [target]
        session.state.withLock { state in
            state.rows = [Row(id, at: 1, ["null"])]
            for (index, (above, below)) in zip(line, line.dropFirst()).enumerated() {
                state.rows.append(Row(below, at: Int64(2 + index), ["\"\(above.lowercased())\""]))
            }
        }
        let answer = try await session.respond(.delete, "/\(id)", body: #"{"reassign_parent_id":"\#(target)"}"#)
        #expect(answer.status == 422 && answer.code == .changeRefused)
        #expect(session.state.withLock(\.batches) == [])
    }

    /// In one that is behind, a child that was written meanwhile is neither where it was nor where it is.
    @Test func aSearchIsContinuedInAStreamThatIsNotBehind() async throws {
        let session = Self.session([Self.deleted, Self.target, Self.child(1)])
        session.state.withLock { $0.maximumRows = 1 }
        #expect(try await Self.delete(session).status == 204)
        // The record, the rows of the search one by one, and the target with what is above it.
        #expect(session.state.withLock(\.leastHeads).prefix(4) == [.zero, .zero, TimeStamp(11), TimeStamp(11)])
    }

    @Test func aSearchIsNotContinuedInAnotherHistory() async throws {
        let session = Self.session([Self.deleted, Self.target, Self.child(1)])
        session.state.withLock { state in
            state.maximumRows = 1
            state.afterRead = { if $0.leastHeads.count == 2 { $0.end = TimeStamp(5) } }
        }
        let answer = try await Self.delete(session)
        #expect(answer.status == 503 && answer.code == .notReady)
        #expect(session.state.withLock(\.batches) == [])
    }

    @Test func moreChildrenThanABatchHasAreReassignedInSeveral() async throws {
        let children = (1...10).map { Self.child($0) }
        let session = Self.session([Self.deleted, Self.target] + children, maxChanges: 5)
        #expect(try await Self.delete(session).status == 204)
        #expect(Self.children(session) == 0)
        // Five children at most, besides the record that they go to.
        let counts = session.state.withLock { $0.batches.map(\.count) }
        #expect(counts.allSatisfy { $0 <= 6 } && counts.reduce(0, +) == 10 + counts.count)
    }

    /// A request has a limited number of transactions; the next request continues.
    @Test func childrenThatAreLeftAreNoSuccess() async throws {
        let children = (1...70).map { Self.child($0) }
        let session = Self.session([Self.deleted, Self.target] + children, maxChanges: 1)
        let answer = try await Self.delete(session)
        #expect(answer.status == 503 && answer.code == .notReady)
        #expect(answer.text == "64 children were reassigned, and others are left: send the request again")
        #expect(Self.children(session) == 6)
        #expect(try await Self.delete(session).status == 204)
        #expect(Self.children(session) == 0)
    }

    @Test func childrenWithoutATargetTakeNoOthersPlace() async throws {
        let copies = (1...5).map { Self.child($0, by: 2) }
        let session = Self.session([Self.deleted, Self.target] + copies + [Self.child(6)], maxChanges: 5)
        #expect(try await Self.delete(session).status == 204)
        #expect(Self.children(session) == 0)
        #expect(session.state.withLock(\.batches) == [ScriptedSession.Batch(isAtomic: true, count: 2)])
    }

    /// The record and the one that they go to are besides.
    @Test func aBatchMayHaveTenThousandChildrenByDefault() async throws {
        let parent = Row("c1", at: 1, ["\"A\"", "null", "null"])
        let session = Self.session([parent, Self.target] + (1...10_001).map { Self.child($0) })
        let refused = try await Self.delete(session)
        #expect(refused.status == 422 && refused.code == .invalidRequest)
        session.state.withLock { _ = $0.rows.removeLast() }
        #expect(try await Self.delete(session).status == 204)
        #expect(session.state.withLock(\.batches) == [ScriptedSession.Batch(isAtomic: true, count: 10_002)])
    }

    /// A session that refuses batches of more changes, as ordering does where their rows are too large together.
    private static func sessionOfLargeRows(
        _ rows: [Row], maxChanges: Int = 4, limits: SyncLimits = SyncLimits()
    ) -> ScriptedSession {
        let session = ScriptedSession.ofCategories(limits: limits) { batch, state in
            let isLarge = batch.count > maxChanges
            state.status = isLarge ? .refused(.batchRowsTooLarge, "large") : .applied(TimeStamp(1), version: 1)
            if isLarge { return }
            let children = state.rows.indices.filter { state.rows[$0].values[1] == "\"c1\"" }
            for index in children.prefix(batch.count - 1) { state.rows[index].values[1] = "\"c2\"" }
        }
        session.state.withLock { $0.rows = rows }
        return session
    }

    @Test func childrenThatAreTooLargeTogetherAreReassignedInSmallerBatches() async throws {
        let session = Self.sessionOfLargeRows([Self.deleted, Self.target] + (1...9).map { Self.child($0) })
        #expect(try await Self.delete(session).status == 204)
        #expect(Self.children(session) == 0)
    }

    /// A batch that ordering refuses takes the device's rate, too, so that the next ones would be refused for it, with each request.
    @Test func childrenThatAreTooLargeTogetherTakeNoMoreOfTheRateThanTheyAre() async throws {
        // 12 bytes each, and the record that they go to has 11.
        let limits = SyncLimits(outcome: OutcomeLimits(maxBatchRowBytes: 1211))
        let session = Self.sessionOfLargeRows(
            [Self.deleted, Self.target] + (1...999).map { Self.child($0) }, maxChanges: 101, limits: limits)
        session.state.withLock { $0.allowedChanges = 1000 }
        #expect(try await Self.delete(session).code == .rateLimited)
        #expect(Self.children(session) == 99)
        session.state.withLock { $0.allowedChanges = 1000 }
        #expect(try await Self.delete(session).status == 204)
        #expect(Self.children(session) == 0)
        #expect(session.state.withLock(\.batches.count) == 10)
    }

    /// With their parent they are changed in one transaction, or not at all.
    @Test func aRecordWhoseChildrenAreTooLargeTogetherIsNotDeleted() async throws {
        let parent = Row("c1", at: 1, ["\"A\"", "null", "null"])
        let session = Self.sessionOfLargeRows([parent, Self.target] + (1...9).map { Self.child($0) })
        let answer = try await Self.delete(session)
        #expect(answer.status == 422 && answer.code == .invalidRequest)
        #expect(session.state.withLock(\.batches.count) == 1 && Self.children(session) == 9)
    }
}
